-- The states of a live run that were kept as sentences in its reason.
ALTER TABLE runs ADD COLUMN origin_delay TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN origin_delay_since INTEGER;
ALTER TABLE runs ADD COLUMN silent_since INTEGER;
UPDATE runs SET origin_delay = 'unreachable',
    origin_delay_since = unixepoch(substr(reason, 28, instr(reason, ': ') - 28)) * 1000000000,
    reason = substr(reason, instr(reason, ': ') + 2)
WHERE state IN ('starting', 'running', 'blocked') AND landing = 'intended' AND reason LIKE 'waits for the origin since %: %';
UPDATE runs SET origin_delay = 'checkout-in-the-way',
    origin_delay_since = unixepoch(substr(reason, 15, instr(reason, ': ') - 15)) * 1000000000,
    reason = substr(reason, instr(reason, ': checkout in the way: ') + 23)
WHERE state IN ('starting', 'running', 'blocked') AND landing = 'intended' AND reason LIKE 'is held since %: checkout in the way: %';
UPDATE runs SET silent_since = unixepoch(substr(reason, 24)) * 1000000000, reason = ''
WHERE state IN ('starting', 'running', 'blocked') AND landing = '' AND reason LIKE 'has said nothing since %';
