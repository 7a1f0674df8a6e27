-- Every metric of a run, from requests.parquet alone, by the definitions of
-- analysis/METRICS.md: one row per sample in samples (name, weight, v), v in ns or
-- tokens. :requests is the path. Ledger times are microseconds since sent.

create temp table r as
select row_number() over () as rid, * from read_parquet($requests)
where phase is distinct from 'warm-up';

create temp table good as
select * from r where outcome in ('ok', 'not_streamed');

-- A chunk: the parts of one event for one choice.
create temp table part as
select rid, unnest(generate_series(1, len(ledger))) as pos, unnest(ledger) as e from good where len(ledger) > 0;

create temp table chunk as
select rid, e.event as event, e.choice as choice, min(pos) as pos, arg_min(e.at_us, pos) * 1000 as t, sum(e.tokens) as tokens,
	bool_or(e.kind <> 'none') as has_text, arg_min(e.source, pos) as source,
	bool_or(e.kind not in ('none', 'reasoning') and (e.tokens is null or e.tokens > 0)) as output
from part group by rid, e.event, e.choice;

create temp table full_chunk as
select *, lag(t) over w as before, row_number() over w as nth
from chunk where case when tokens is null then has_text else tokens > 0 end
window w as (partition by rid, choice order by pos);

-- What a ledger as a whole knows.
create temp table ledger_sum as
select rid, sum(tokens) as total, bool_and(tokens is not null) as counted, bool_or(tokens is null and source = 'usage') as fell
from chunk group by rid;

create temp table span as
select rid, sum(t - before) as spent, count(before) as gaps, count(*) filter (nth = 1) as choices,
	sum(tokens) filter (nth = 1) as head, bool_and(tokens is not null) filter (nth = 1) as first_counted
from full_chunk group by rid;

create temp table first_chunk as
select rid, min_by(choice, pos) as choice, min_by(t, pos) as t, min_by(t, pos) filter (output) as output_at from full_chunk group by rid;

create temp table growing as
select rid, pos, t, tokens, sum(tokens) over (partition by rid order by pos) as so_far from chunk;

create temp table samples as
select 'lateness' as name, 1 as weight, dispatched_ns - eligible_ns as v from r where dispatched_ns is not null and eligible_ns is not null
union all select 'hold', 1, eligible_ns - due_ns from r where dispatched_ns is not null and eligible_ns > due_ns
union all select 'connect', 1, connected_ns - dispatched_ns from r where connected_ns is not null and conn_reused = false
union all select 'ttft', 1, t from first_chunk
union all select 'ttfo', 1, output_at from first_chunk where output_at is not null
union all select 'ttst', 1, c.t - f.t from first_chunk f join full_chunk c on c.rid = f.rid and c.choice = f.choice and c.nth = 2
union all select 'itl', tokens, (t - before) // tokens from full_chunk join ledger_sum using (rid) where before is not null and counted
union all select 'chunk_gap', 1, t - before from full_chunk where before is not null
union all select 'longest_stall', 1, max(t - before) from full_chunk where before is not null group by rid
union all select 'tpot', 1, spent // (output_tokens - head) from span join ledger_sum using (rid) join good using (rid)
	where gaps > 0 and first_counted and not fell and output_tokens - head >= 1
union all select 'tpot_osl1', 1, spent // (output_tokens - choices) from span join good using (rid) where gaps > 0 and output_tokens - choices >= 1
union all select 'time_to_90', 1, min(t) from growing join ledger_sum using (rid) where counted and total > 0 and tokens > 0 and so_far * 10 >= total * 9 group by rid
union all select 'e2e', 1, end_ns - sent_ns from good where end_ns is not null and sent_ns is not null
union all select 'response_time', 1, end_ns - due_ns from good where end_ns is not null and due_ns is not null
union all select 'tokens_per_chunk', 1, tokens from full_chunk where tokens is not null
union all select 'input_tokens', 1, counted_input_tokens from good where counted_input_tokens is not null
union all select 'output_tokens', 1, output_tokens from good where output_tokens is not null;

-- Numbers of the whole run.
create temp table span_of_run as
select min(sent_ns) as first_sent, max(sent_ns) as last_sent, max(end_ns) filter (sent_ns is not null) as last_end,
	max(due_ns) - min(due_ns) as arrival, count(due_ns) as due,
	count(*) filter (outcome not in ('ok', 'not_streamed', 'unsent')) as censored,
	count(*) filter (outcome not in ('ok', 'not_streamed', 'unsent', 'cut', 'cancelled')) as failed
from r;

create temp table numbers as
with w as (select *, (last_end - first_sent) / 1e9 as secs, (last_sent - first_sent) / 1e9 as steady from span_of_run),
	g as (select count(*) as n, sum(counted_input_tokens) as input, sum(output_tokens) as output,
		count(*) filter (counted_input_tokens is null) as no_input, count(*) filter (output_tokens is null) as no_output,
		count(*) filter (end_ns <= last_sent) as within
	from good, w)
select 'window_ms' as name, secs * 1e3 as v from w
union all select 'requests_per_s', n / secs from w, g
union all select 'input_tokens_per_s', input / secs from w, g
union all select 'output_tokens_per_s', output / secs from w, g
union all select 'input_uncounted_requests', no_input from g
union all select 'output_uncounted_requests', no_output from g
union all select 'arrival_window_ms', arrival / 1e6 from w
union all select 'due_requests_per_s', (due - 1) / (arrival / 1e9) from w
union all select 'steady_window_ms', steady * 1e3 from w
union all select 'steady_requests_per_s', within / steady from w, g
union all select 'drain_ms', greatest(0, (last_end - last_sent) / 1e6) from w
union all select 'error_rate', failed / (n + censored) from w, g;

-- Sessions: turns and makespan.
create temp table session_samples as
select 'turns' as name, count(sent_ns) as v from r where session_id is not null group by session_id having count(sent_ns) > 0
union all select 'makespan', max(end_ns) filter (sent_ns is not null) - min(sent_ns) from r where session_id is not null group by session_id having count(sent_ns) > 0
union all select 'agent_makespan', max(end_ns) filter (sent_ns is not null) - min(sent_ns) from r where session_id is not null and agent is not null and agent <> '' group by session_id, agent having count(sent_ns) > 0;

-- Goodput of ttft<:ttft_ns, tpot<:tpot_ns: what is lacking is met.
create temp table goodput as
with met as (
	select r.rid, r.session_id, r.output_tokens,
		outcome in ('ok', 'not_streamed') and coalesce(f.t < $ttft_ns, true)
		and coalesce(case when s.gaps > 0 and s.first_counted and not l.fell and r.output_tokens - s.head >= 1 then s.spent // (r.output_tokens - s.head) < $tpot_ns end, true) as good
	from r left join first_chunk f using (rid) left join span s using (rid) left join ledger_sum l using (rid)
	where outcome <> 'unsent')
select count(*) filter (good) as good_requests, count(*) filter (good) / count(*) as good_share, sum(output_tokens) filter (good) as tokens,
	(select count(*) from (select bool_and(good) as g from met where session_id is not null group by session_id) where g) as good_sessions,
	(select count(distinct session_id) from met) as sessions
from met;
