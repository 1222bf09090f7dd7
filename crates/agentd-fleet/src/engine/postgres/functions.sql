-- What takes several statements is a function: a worker that is frozen in the middle of it holds no lock,
-- since there is no middle for it, and it takes one round trip.

-- The queue for the next step of a change; none if no worker has an account for it. Of several accounts, it
-- is the one with the least to do, and one that rests only if all do.
CREATE OR REPLACE FUNCTION agentd_fleet.queue_for(in_repository text, in_step text, in_agent text)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN in_agent IS NULL AND in_step = 'archive' THEN 'agentd:archive:' || in_repository
        WHEN in_agent IS NULL THEN 'agentd:free:' || in_repository
        ELSE (SELECT 'agentd:call:' || a.account
              FROM (SELECT DISTINCT unnest(w.accounts) AS account FROM agentd_fleet.worker w
                    WHERE NOT w.dead AND w.repository = in_repository) a
              WHERE split_part(a.account, ':', 1) = in_agent
              ORDER BY EXISTS (SELECT 1 FROM agentd_fleet.throttle t
                               WHERE t.account = a.account AND t.until > now()),
                       (SELECT count(*) FROM dbos.workflow_status s
                        WHERE s.queue_name = 'agentd:call:' || a.account
                          AND s.status IN ('ENQUEUED', 'PENDING')), a.account
              LIMIT 1)
    END
$$;

-- The budget of this day.
CREATE OR REPLACE FUNCTION agentd_fleet.today() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT 'day:' || to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD')
$$;

-- Everybody locks budgets in the same order.
CREATE OR REPLACE FUNCTION agentd_fleet.lock_budgets(in_scopes text[])
RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT scope FROM agentd_fleet.budget WHERE scope = ANY(in_scopes) ORDER BY scope FOR UPDATE
$$;

-- What a call has cost, instead of what is reserved for it.
CREATE OR REPLACE FUNCTION agentd_fleet.charge(
    in_id text, in_attempt bigint, in_cost float8, in_state text
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    done agentd_fleet.call;
BEGIN
    UPDATE agentd_fleet.call SET cost_usd = in_cost, state = in_state
        WHERE id = in_id AND attempt = in_attempt RETURNING * INTO done;
    PERFORM agentd_fleet.lock_budgets(done.scopes);
    UPDATE agentd_fleet.budget
        SET spent_usd = spent_usd + in_cost,
            reserved_usd = greatest(reserved_usd - done.estimate_usd, 0)
        WHERE scope = ANY(done.scopes);
END
$$;

-- The price of a call that was cut short, as the vendor says; whether there was such a call.
CREATE OR REPLACE FUNCTION agentd_fleet.settle_call(in_id text, in_attempt bigint, in_cost float8)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM agentd_fleet.call
        WHERE id = in_id AND attempt = in_attempt AND state = 'unsettled' FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM agentd_fleet.charge(in_id, in_attempt, in_cost, 'settled');
    RETURN true;
END
$$;

-- Whether a budget has no room for what a call is expected to cost. One that is used up has none for a call
-- of which nobody knows the price.
CREATE OR REPLACE FUNCTION agentd_fleet.refuses(b agentd_fleet.budget, in_estimate float8)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(b.spent_usd + b.reserved_usd + in_estimate > b.cap_usd
        OR b.spent_usd + b.reserved_usd >= b.cap_usd, false)
$$;

-- Changes go on for which there is room again: a budget was raised, a call was cheaper than expected, or
-- another day has begun.
CREATE OR REPLACE FUNCTION agentd_fleet.afford(in_repository text) RETURNS void LANGUAGE sql VOLATILE AS $$
    UPDATE agentd_fleet.change c SET state = 'ready', why = NULL, sequence = c.sequence + 1
    FROM agentd_fleet.budget b
    WHERE c.repository = in_repository AND c.state = 'over_budget' AND b.scope = c.refused_by
        AND (NOT agentd_fleet.refuses(b, c.refused_usd)
            OR b.scope LIKE 'day:%' AND b.scope <> agentd_fleet.today())
$$;

-- A worker gets a step that DBOS has admitted: it is checked that the step is still wanted, and what it is
-- expected to cost is reserved in all budgets or in none. The verdict is `claimed`, `unwanted`,
-- `over_budget`, or `gone` if somebody else has the step meanwhile.
CREATE OR REPLACE FUNCTION agentd_fleet.claim_step(
    in_child text, in_change text, in_sequence bigint, in_worker text, in_account text, in_team text,
    OUT out_verdict text, OUT out_change text, OUT out_submission text, OUT out_step text,
    OUT out_attempt bigint, OUT out_orphaned boolean
) LANGUAGE plpgsql AS $$
DECLARE
    c agentd_fleet.change;
    scopes text[];
    estimate float8 := 0;
    refused text;
BEGIN
    -- The step begins when this is on disk: it is not done by two after a crash of the server, and no
    -- money is spent that was not reserved.
    PERFORM set_config('synchronous_commit', 'on', true);
    PERFORM 1 FROM dbos.workflow_status
        WHERE workflow_uuid = in_child AND status = 'PENDING' AND executor_id = in_worker FOR UPDATE;
    IF NOT FOUND THEN
        out_verdict := 'gone';
        RETURN;
    END IF;
    SELECT * INTO c FROM agentd_fleet.change WHERE id = in_change FOR UPDATE;
    IF NOT FOUND OR c.state <> 'ready' OR c.paused OR c.sequence <> in_sequence
        OR NOT EXISTS (SELECT 1 FROM agentd_fleet.worker WHERE name = in_worker AND NOT dead)
    THEN
        out_verdict := 'unwanted';
        RETURN;
    END IF;
    scopes := ARRAY[
        'change:' || in_change,
        'repository:' || c.repository,
        agentd_fleet.today()
    ];
    IF in_account IS NOT NULL THEN
        scopes := scopes || ('team:' || in_team);
        estimate := c.estimate_usd;
        -- Of what agentd expects nothing: what such calls have cost so far.
        IF estimate <= 0 THEN
            SELECT coalesce(avg(l.cost_usd), 0) INTO estimate FROM
                (SELECT cost_usd FROM agentd_fleet.call WHERE step = c.step AND state = 'settled'
                 ORDER BY ended DESC LIMIT 20) l;
        END IF;
        INSERT INTO agentd_fleet.budget (scope, cap_usd)
            SELECT s, CASE WHEN s LIKE 'day:%' THEN
                (SELECT cap_usd FROM agentd_fleet.budget WHERE scope = 'day') END
            FROM unnest(scopes) AS s ORDER BY s ON CONFLICT DO NOTHING;
        PERFORM agentd_fleet.lock_budgets(scopes);
        SELECT scope INTO refused FROM agentd_fleet.budget
            WHERE scope = ANY(scopes) AND agentd_fleet.refuses(budget, estimate)
            ORDER BY array_position(scopes, scope) LIMIT 1;
        IF FOUND THEN
            UPDATE agentd_fleet.change SET state = 'over_budget', why = format(
                'the budget %s is used up; the next call needs $%s',
                refused, round(estimate::numeric, 4)),
                refused_by = refused, refused_usd = estimate WHERE id = in_change;
            out_verdict := 'over_budget';
            RETURN;
        END IF;
        UPDATE agentd_fleet.budget SET reserved_usd = reserved_usd + estimate
            WHERE scope = ANY(scopes);
    END IF;
    SELECT count(*) + 1 INTO out_attempt FROM agentd_fleet.call WHERE id = in_child;
    INSERT INTO agentd_fleet.call
        (id, attempt, change, step, worker, account, estimate_usd, state, scopes)
        VALUES (in_child, out_attempt, in_change, coalesce(c.step, 'look'), in_worker, in_account,
                estimate, 'running', scopes);
    out_verdict := 'claimed';
    out_change := c.change;
    out_submission := c.submission;
    out_step := c.step;
    out_orphaned := c.orphaned;
END
$$;

-- What came of a step: `stepped`, `busy`, `throttled`, `lost` or `failed`. The state is none if the worker had lost the
-- step; the queue is that of the next step, if there is one that may be done now.
CREATE OR REPLACE FUNCTION agentd_fleet.finish_step(
    in_child text, in_attempt bigint, in_change text, in_worker text, in_outcome text, in_why text,
    in_before float8, in_cost float8, in_did text, in_step text, in_agent text, in_estimate float8,
    in_done boolean, in_phase text, in_tip text, in_rest float8,
    OUT out_state text, OUT out_sequence bigint, OUT out_priority int, OUT out_queue text
) LANGUAGE plpgsql AS $$
DECLARE
    c agentd_fleet.change;
    stepped boolean := in_outcome = 'stepped';
    known float8;
BEGIN
    UPDATE agentd_fleet.call SET ended = now(), state =
            CASE WHEN stepped THEN 'settled' WHEN in_outcome IN ('busy', 'throttled') THEN 'void'
                ELSE 'unsettled' END
        WHERE id = in_child AND attempt = in_attempt AND worker = in_worker AND state = 'running';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO c FROM agentd_fleet.change WHERE id = in_change FOR UPDATE;
    known := c.cost_usd;
    -- Somebody has died over a call, and what comes next is something else: it was checkpointed before they
    -- could say so, and the books of the change have its price.
    IF stepped AND in_before IS NOT NULL AND c.lost_id IS NOT NULL
        AND coalesce(in_did, in_step, '') <> c.lost_step
    THEN
        PERFORM agentd_fleet.charge(c.lost_id, c.lost_attempt, in_before - known, 'found');
    END IF;
    IF stepped THEN
        PERFORM agentd_fleet.charge(in_child, in_attempt, in_cost - coalesce(in_before, known), 'settled');
    -- Nothing was called. What a refused call has cost is in the books of the change, and counts with its
    -- next step.
    ELSIF in_outcome IN ('busy', 'throttled') THEN
        PERFORM agentd_fleet.charge(in_child, in_attempt, 0, 'void');
    END IF;
    out_state := CASE
        WHEN in_outcome = 'failed' THEN 'failed'
        WHEN NOT stepped THEN 'ready'
        WHEN in_done THEN 'done'
        WHEN in_step IS NULL THEN 'waiting'
        ELSE 'ready'
    END;
    UPDATE agentd_fleet.change SET
        sequence = sequence + 1,
        state = out_state,
        why = in_why,
        tip = in_tip,
        step = in_step,
        agent = in_agent,
        estimate_usd = in_estimate,
        phase = CASE WHEN stepped THEN in_phase ELSE phase END,
        cost_usd = CASE WHEN stepped THEN in_cost ELSE cost_usd END,
        -- The claim of the dead is on the remote until somebody has done something.
        orphaned = orphaned AND NOT (stepped AND (in_did IS NOT NULL OR in_step IS NULL)),
        lost_id = CASE WHEN stepped THEN NULL ELSE lost_id END,
        rests_until = CASE WHEN in_outcome IN ('busy', 'throttled', 'lost')
            THEN now() + make_interval(secs => in_rest) END
        WHERE id = in_change RETURNING sequence, priority INTO out_sequence, out_priority;
    IF out_state = 'ready' AND (stepped OR in_outcome = 'throttled' AND in_rest <= 0) AND NOT c.paused THEN
        out_queue := agentd_fleet.queue_for(c.repository, in_step, in_agent);
    END IF;
END
$$;

-- The steps of the dead are nobody's any more. What they cost is not known yet.
CREATE OR REPLACE FUNCTION agentd_fleet.bury() RETURNS SETOF text LANGUAGE sql VOLATILE AS $$
    WITH cut AS (
        UPDATE agentd_fleet.call l SET state = 'unsettled', ended = now()
        FROM agentd_fleet.worker w
        WHERE l.worker = w.name AND w.dead AND l.state = 'running'
        RETURNING l.id, l.attempt, l.change, l.step
    ), orphans AS (
        UPDATE agentd_fleet.change c SET orphaned = true, lost_id = cut.id,
            lost_attempt = cut.attempt, lost_step = nullif(cut.step, 'look')
        FROM cut WHERE c.id = cut.change
    )
    SELECT DISTINCT s.executor_id FROM dbos.workflow_status s
    JOIN agentd_fleet.worker w ON w.name = s.executor_id
    WHERE w.dead AND s.status = 'PENDING' AND s.name = 'step'
$$;
