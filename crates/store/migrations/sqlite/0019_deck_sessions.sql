-- Login links and sessions of the flight deck are tokens that are shown in another way.
ALTER TABLE tokens ADD COLUMN shown_as TEXT NOT NULL DEFAULT 'token' CHECK (shown_as IN ('token', 'login', 'session'));
ALTER TABLE tokens ADD COLUMN used_at INTEGER;
