/**
 * Prometheus accepts the files of deploy/monitoring: each alert fires when it should, none on a new cloud.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { notInstalled } from '../../scripts/installed.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';
import { eventually } from '../harness/waiting.ts';

const FOLDER = fileURLToPath(new URL('../../deploy/monitoring/', import.meta.url));
const RULES = join(FOLDER, 'alerts.yml');
const skip = notInstalled('promtool') || notInstalled('prometheus');

const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function promtool(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
  return stdout;
}

/** Samples of a scrape every minute, for hours; the values use promtool's own notation. */
const FIRING: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  CloudletDown: { 'up{job="cloudlet",instance="c"}': '0x120' },
  CloudletAlarm: { 'cloudlet_alarm{code="out_of_space"}': '1x120' },
  CloudletDiskNearlyFull: { cloudlet_disk_free_bytes: '14x120', cloudlet_disk_size_bytes: '100x120' },
  CloudletDatabaseEngineDown: { 'cloudlet_database_engine_up{engine="mysql"}': '0x120' },
  CloudletDatabaseBroken: { 'cloudlet_databases{engine="mysql",state="error"}': '1x120' },
  CloudletMachineBroken: { 'cloudlet_vms{state="error"}': '1x120' },
  CloudletDamage: { 'cloudlet_scrub_damaged{kind="content"}': '1x120' },
  CloudletServerErrors: {
    'cloudlet_http_requests_total{protocol="s3",status="500"}': '0+2x120',
    'cloudlet_http_requests_total{protocol="s3",status="200"}': '0+100x120',
  },
  CloudletPasswordGuessing: { cloudlet_failed_sign_ins_total: '0+60x120' },
  CloudletRecoveryPointOld: { cloudlet_recovery_point_age_seconds: '700000x120' },
  CloudletRecoveryTargetDown: { cloudlet_recovery_target_up: '0x120' },
  CloudletNodeLost: {
    'cloudlet_nodes{instance="a",state="lost"}': '1x120',
    'cloudlet_nodes{instance="b",state="lost"}': '1x120',
  },
  CloudletRestarts: { 'process_start_time_seconds{job="cloudlet"}': '0+100x120' },
};

test('Prometheus takes the rules, and each alert fires', { skip }, () => {
  promtool('check', 'rules', RULES);
  const names = [...readFileSync(RULES, 'utf8').matchAll(/alert: (\w+)/g)].map(([, name]) => name);
  assert.deepEqual(names.sort(), Object.keys(FIRING).sort(), 'each alert has a case');
  for (const [name, series] of Object.entries(FIRING)) {
    const input_series = Object.entries(series).map(([each, values]) => ({ series: each, values }));
    const run = (expected: boolean) => {
      const query = `count(ALERTS{alertname="${name}",alertstate="firing"})`;
      const promql_expr_test = [
        { expr: query, eval_time: '110m', exp_samples: expected ? [{ labels: '{}', value: 1 }] : [] },
      ];
      const file = join(folder, 'rules-test.yml');
      writeFileSync(
        file,
        JSON.stringify({
          rule_files: [RULES],
          evaluation_interval: '1m',
          tests: [{ interval: '1m', input_series, promql_expr_test }],
        }),
      );
      return spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
    };
    const { status, stdout } = run(true);
    assert.equal(status, 0, `${name}: ${stdout}`);
    assert.notEqual(run(false).status, 0, `${name}: the case would pass without the alert`);
  }
});

test('Prometheus scrapes a new cloud, on which nothing fires, and every panel has its series', {
  skip,
}, async () => {
  const cloud = await CloudProcess.start();
  after(() => cloud.stop());
  const port = await freePort();
  const config = readFileSync(join(FOLDER, 'prometheus.yml'), 'utf8')
    .replace('127.0.0.1:8080', new URL(cloud.api).host)
    .replaceAll('15s', '1s')
    .replace('alerts.yml', RULES);
  const file = join(folder, 'prometheus.yml');
  writeFileSync(file, config);
  promtool('check', 'config', file);
  const options = [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'data')}`];
  const server = spawn('prometheus', [...options, `--web.listen-address=127.0.0.1:${port}`], {
    stdio: 'ignore',
  });
  after(() => server.kill('SIGKILL'));
  const ask = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    return ((await response.json()) as { data: { result?: unknown[]; alerts?: { labels: unknown }[] } }).data;
  };
  const query = async (expr: string) => (await ask(`query?query=${encodeURIComponent(expr)}`)).result ?? [];
  await eventually('Prometheus scrapes', async () => {
    return (await query('up == 1').catch(() => [])).length === 1 || undefined;
  });
  // Rates need two scrapes, series in the query a moment.
  await fetch(`${cloud.api}/api/none`);
  await eventually('rates are known', async () => {
    return (await query('rate(cloudlet_http_requests_total{status="404"}[1m])')).length > 0 || undefined;
  });
  assert.deepEqual(
    (await ask('alerts')).alerts?.map(({ labels }) => labels),
    [],
  );
  const { panels } = JSON.parse(readFileSync(join(FOLDER, 'grafana-dashboard.json'), 'utf8')) as {
    panels: readonly { title: string; targets: readonly { expr: string }[] }[];
  };
  /** Without a machine, a database or a point there are no samples. */
  const later = [
    'cloudlet_recovery_point_age_seconds',
    'cloudlet_vms',
    'cloudlet_databases',
    'cloudlet_hypervisor_up',
  ];
  for (const { title, targets } of panels) {
    for (const { expr } of targets) {
      const found = await query(expr.replaceAll('[5m]', '[1m]'));
      if (!later.includes(expr) && !expr.includes('statements'))
        assert.ok(found.length > 0, `${title}: ${expr}`);
    }
  }
  cloud.kill();
  await eventually('the cloud is missed', async () => {
    return JSON.stringify((await ask('alerts')).alerts).includes('CloudletDown') || undefined;
  });
});
