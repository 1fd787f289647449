-- Work that agents were given and have begun, for which nobody speaks: whoever looks for silence need not step over all
-- the work that has a lease.
CREATE INDEX runs_unleased ON runs (bead) WHERE executor = 'pull' AND state = 'running' AND lease_expires_at IS NULL;
