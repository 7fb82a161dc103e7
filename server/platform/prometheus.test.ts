import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from './clock.ts';
import { Meters, type SeriesSample } from './prometheus.ts';

/** Series → value, as Prometheus reads the text. */
function parse(text: string): Map<string, number> {
  assert.ok(text.endsWith('\n'));
  const series = new Map<string, number>();
  for (const line of text.trimEnd().split('\n')) {
    if (line.startsWith('#')) {
      assert.match(line, /^# (?:HELP [a-z_]+ .+|TYPE [a-z_]+ (?:counter|gauge|histogram))$/);
      continue;
    }
    const [, name, value] = /^([a-z_]+(?:\{[^}]*\})?) (\S+)$/.exec(line) ?? assert.fail(line);
    assert.ok(!series.has(name as string), `${name} twice`);
    series.set(name as string, Number(value));
  }
  return series;
}

test('requests are counted by route, protocol and status', async () => {
  const meters = new Meters();
  for (const status of [200, 200, 404])
    meters.observeRequest({ protocol: 'rest', route: 'getBucket', status }, 0.01);
  const series = parse(await meters.render());
  assert.equal(series.get('cloudlet_http_requests_total{route="getBucket",protocol="rest",status="200"}'), 2);
  assert.equal(series.get('cloudlet_http_requests_total{route="getBucket",protocol="rest",status="404"}'), 1);
});

test('durations fall into every bucket whose bound they do not pass', async () => {
  const seconds = fc.double({ min: 0, max: 100, noNaN: true });
  const edges = fc.constantFrom(0.001, 0.005, 1, 60, 60.001);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(seconds, edges), { minLength: 1, maxLength: 50 }),
      async (durations) => {
        const meters = new Meters();
        for (const duration of durations)
          meters.observeRequest({ protocol: 'rest', route: 'r', status: 200 }, duration);
        const series = parse(await meters.render());
        const name = 'cloudlet_http_request_duration_seconds';
        const buckets = [...series].filter(([key]) => key.startsWith(`${name}_bucket`));
        assert.equal(buckets.length, 15);
        for (const [key, count] of buckets) {
          const bound = /le="([^"]+)"/.exec(key)?.[1] ?? '';
          const limit = bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound);
          assert.equal(count, durations.filter((duration) => duration <= limit).length, key);
        }
        assert.equal(series.get(`${name}_count{route="r",protocol="rest"}`), durations.length);
        const sum = durations.reduce((total, duration) => total + duration, 0);
        assert.ok(Math.abs((series.get(`${name}_sum{route="r",protocol="rest"}`) ?? 0) - sum) < 1e-6);
      },
    ),
  );
});

test('a gauge is read at the moment it is asked for', async () => {
  const meters = new Meters();
  let value = 1;
  meters.gauge('cloudlet_connections', { help: 'Open', type: 'gauge', read: () => value });
  assert.equal(parse(await meters.render()).get('cloudlet_connections'), 1);
  value = 7;
  const text = await meters.render();
  assert.equal(parse(text).get('cloudlet_connections'), 7);
  assert.ok(text.includes('# HELP cloudlet_connections Open\n# TYPE cloudlet_connections gauge\n'));
});

test('labelled series are for the operator only, and a label stays one label', async () => {
  const meters = new Meters();
  const samples = [
    { labels: ['vm-1', '7'], value: 3 },
    { labels: ['a"\\\n', '8'], value: 4 },
  ];
  const shape = { help: 'Up', type: 'gauge', labels: ['vm_id', 'account'] } as const;
  meters.series('cloudlet_vm_up', { ...shape, read: () => samples });
  assert.ok(!(await meters.render()).includes('vm-1'));
  const text = await meters.render({ details: true });
  assert.equal(parse(text).get('cloudlet_vm_up{vm_id="vm-1",account="7"}'), 3);
  assert.ok(text.includes('cloudlet_vm_up{vm_id="a\\"\\\\\\n",account="8"} 4\n'));
});

test('what costs a query is asked for once in a while, is left out when it fails, and holds no scrape', async () => {
  const clock = new FakeClock();
  const meters = new Meters(clock);
  let asked = 0;
  let answer: () => Promise<readonly SeriesSample[]> = async () => [{ labels: [], value: asked }];
  const shape = { help: 'Objects', type: 'gauge', labels: [], isPublic: true } as const;
  const ask = () => {
    asked++;
    return answer();
  };
  meters.askedSeries('cloudlet_storage_objects', { ...shape, ask });
  const shown = async () => parse(await meters.render()).get('cloudlet_storage_objects');
  const both = await Promise.all([shown(), shown()]);
  assert.deepEqual([both, await shown(), asked], [[1, 1], 1, 1]);
  clock.advance(11_000);
  assert.equal(await shown(), 2);
  clock.advance(11_000);
  answer = () => new Promise(() => {});
  assert.equal(await shown(), 2, 'the one before, as the store does not answer');
  assert.equal(asked, 3);
  const failing = new Meters(clock);
  failing.askedSeries('cloudlet_storage_objects', { ...shape, ask: () => Promise.reject(new Error('no')) });
  assert.doesNotMatch(await failing.render(), /storage_objects/);
});
