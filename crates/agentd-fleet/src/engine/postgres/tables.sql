CREATE SCHEMA IF NOT EXISTS agentd_fleet;
CREATE TABLE IF NOT EXISTS agentd_fleet.change (
    id text PRIMARY KEY,
    repository text NOT NULL,
    change text NOT NULL,
    submission text NOT NULL,
    priority int NOT NULL,
    state text NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    sequence bigint NOT NULL DEFAULT 0,
    step text,
    agent text,
    estimate_usd float8 NOT NULL DEFAULT 0,
    why text,
    phase text,
    cost_usd float8 NOT NULL DEFAULT 0,
    tip text,
    submitted_at timestamptz NOT NULL DEFAULT now()
);
-- Whether who had it last has died, and nobody has done anything since.
ALTER TABLE agentd_fleet.change ADD COLUMN IF NOT EXISTS orphaned boolean NOT NULL DEFAULT false;
-- The call over which they have died, until somebody has looked whether it was checkpointed.
ALTER TABLE agentd_fleet.change ADD COLUMN IF NOT EXISTS lost_id text;
ALTER TABLE agentd_fleet.change ADD COLUMN IF NOT EXISTS lost_attempt bigint;
ALTER TABLE agentd_fleet.change ADD COLUMN IF NOT EXISTS lost_step text;
-- The budget that had no room for its next call, and what that is expected to cost.
ALTER TABLE agentd_fleet.change ADD COLUMN IF NOT EXISTS refused_by text;
ALTER TABLE agentd_fleet.change ADD COLUMN IF NOT EXISTS refused_usd float8 NOT NULL DEFAULT 0;
-- Until when nobody tries it again.
ALTER TABLE agentd_fleet.change ADD COLUMN IF NOT EXISTS rests_until timestamptz;
CREATE INDEX IF NOT EXISTS change_state ON agentd_fleet.change (repository, state);
CREATE TABLE IF NOT EXISTS agentd_fleet.worker (
    name text PRIMARY KEY,
    repository text NOT NULL,
    accounts text[] NOT NULL,
    slots int NOT NULL,
    beat timestamptz NOT NULL DEFAULT now(),
    began timestamptz NOT NULL DEFAULT now(),
    dead boolean NOT NULL DEFAULT false,
    drain boolean NOT NULL DEFAULT false
);
-- Whether it was declared dead, and did not end by itself.
ALTER TABLE agentd_fleet.worker ADD COLUMN IF NOT EXISTS lost boolean NOT NULL DEFAULT false;
-- Its last sign of life, by the clock of the fleet; `beat` is for people.
ALTER TABLE agentd_fleet.worker ADD COLUMN IF NOT EXISTS alive_at float8 NOT NULL DEFAULT 0;
-- The clock of the fleet, in seconds: it goes on only while workers show that they are alive.
CREATE TABLE IF NOT EXISTS agentd_fleet.clock (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    seconds float8 NOT NULL DEFAULT 0,
    moved timestamptz NOT NULL DEFAULT now()
);
INSERT INTO agentd_fleet.clock DEFAULT VALUES ON CONFLICT DO NOTHING;
-- `state` is `running`, `settled`, `void` (nothing was called), `unsettled` (cut short: nobody knows the
-- price), or `found` (cut short, and in the books of the change after all).
CREATE TABLE IF NOT EXISTS agentd_fleet.call (
    id text NOT NULL,
    attempt bigint NOT NULL,
    change text NOT NULL,
    step text NOT NULL,
    worker text NOT NULL,
    account text,
    estimate_usd float8 NOT NULL,
    cost_usd float8,
    state text NOT NULL,
    scopes text[] NOT NULL,
    began timestamptz NOT NULL DEFAULT now(),
    ended timestamptz,
    PRIMARY KEY (id, attempt)
);
CREATE INDEX IF NOT EXISTS call_change ON agentd_fleet.call (change, state);
CREATE INDEX IF NOT EXISTS call_worker ON agentd_fleet.call (worker) WHERE state = 'running';
CREATE INDEX IF NOT EXISTS call_price ON agentd_fleet.call (step, ended) WHERE state = 'settled';
CREATE TABLE IF NOT EXISTS agentd_fleet.budget (
    scope text PRIMARY KEY,
    cap_usd float8,
    spent_usd float8 NOT NULL DEFAULT 0,
    reserved_usd float8 NOT NULL DEFAULT 0
);
-- Accounts that are used less for a while, because their vendor has refused calls.
CREATE TABLE IF NOT EXISTS agentd_fleet.throttle (
    account text PRIMARY KEY,
    lowered_to int NOT NULL,
    times int NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    until timestamptz NOT NULL,
    why text NOT NULL
);
CREATE TABLE IF NOT EXISTS agentd_fleet.setting (
    name text PRIMARY KEY,
    value text NOT NULL
);
