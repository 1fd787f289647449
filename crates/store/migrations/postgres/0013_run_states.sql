-- The states of a live run that were kept as sentences in its reason.
ALTER TABLE runs ADD COLUMN origin_delay TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN origin_delay_since BIGINT;
ALTER TABLE runs ADD COLUMN silent_since BIGINT;
UPDATE runs SET origin_delay = 'unreachable',
    origin_delay_since = (EXTRACT(EPOCH FROM (substr(reason, 28, strpos(reason, ': ') - 28))::timestamptz) * 1000000000)::BIGINT,
    reason = substr(reason, strpos(reason, ': ') + 2)
WHERE state IN ('starting', 'running', 'blocked') AND landing = 'intended' AND reason LIKE 'waits for the origin since %: %';
UPDATE runs SET origin_delay = 'checkout-in-the-way',
    origin_delay_since = (EXTRACT(EPOCH FROM (substr(reason, 15, strpos(reason, ': ') - 15))::timestamptz) * 1000000000)::BIGINT,
    reason = substr(reason, strpos(reason, ': checkout in the way: ') + 23)
WHERE state IN ('starting', 'running', 'blocked') AND landing = 'intended' AND reason LIKE 'is held since %: checkout in the way: %';
UPDATE runs SET silent_since = (EXTRACT(EPOCH FROM (substr(reason, 24))::timestamptz) * 1000000000)::BIGINT, reason = ''
WHERE state IN ('starting', 'running', 'blocked') AND landing = '' AND reason LIKE 'has said nothing since %';
