-- The guards of each machine that hold up starts, since when. It knows the disk now; a forgotten guard is shut again at the next check.
DROP TABLE guards;
CREATE TABLE guards (
    host  TEXT NOT NULL,
    kind  TEXT NOT NULL CHECK (kind IN ('memory', 'load', 'disk')),
    since INTEGER NOT NULL,
    PRIMARY KEY (host, kind)
) STRICT, WITHOUT ROWID;
