// Runs inside the Perfetto UI: waits for the trace and posts what its trace processor made of it.
"use strict";
const STR = "str", NUM = 0;
const sleep = ms => new Promise(done => setTimeout(done, ms));

async function rows(engine, sql, spec) {
  const result = await engine.query(sql), found = [];
  for (const it = result.iter(spec); it.valid(); it.next())
    found.push(Object.fromEntries(Object.keys(spec).map(key => [key, it[key]])));
  return found;
}

async function look() {
  while (!(window.app && app.trace)) await sleep(100);
  const engine = app.trace.engine;
  const one = async sql => (await rows(engine, `select count(*) as n from ${sql}`, {n: NUM}))[0].n;
  return {
    faults: await rows(engine, "select name, severity, value from stats where severity != 'info' and value > 0",
      {name: STR, severity: STR, value: NUM}),
    processes: await rows(engine, "select pid, ifnull(name, '') as name from process where pid is not null order by pid", {pid: NUM, name: STR}),
    slices: await one("slice"), flows: await one("flow"), counters: await one("counter"),
    unfinished: await one("slice where dur < 0"),
    unnamed: await one("thread where name is null and utid in (select utid from thread_track)"),
  };
}

look().catch(error => ({error: String(error)}))
  .then(found => fetch("/result", {method: "POST", body: JSON.stringify(found)}));
