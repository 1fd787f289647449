-- A token of scope work acts for one agent. Tokens that are there already stay bound to none.
ALTER TABLE tokens ADD COLUMN agent TEXT;
