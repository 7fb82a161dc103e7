/**
 * Files of deploy/ for Docker and Kubernetes, which no test runs. Debian and npm have no package of Helm:
 * Go's own template engine, in WebAssembly from an npm package, renders the chart, whose templates use none
 * of Helm's own functions. The values are checked against their schema, as in Helm, and a front node starts
 * with the settings and rights of the pod.
 */
import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { freePort } from '../harness/free-port.ts';
import { NpmFolder } from './npm-folder.ts';

const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));
const CHART = join(DEPLOY, 'helm/cloudlet/');
const PACKAGES = ['@evertdespiegeleer/go-template@1.0.2', 'yaml@2.9.1', 'ajv@8.20.0'];
const USER = 10001;

/** Prints `{ refusals, objects }` of a chart with these values in place of its own. */
const RENDER = `
import { readdirSync, readFileSync } from 'node:fs';
import { parse as render } from '@evertdespiegeleer/go-template';
import { parse, parseAllDocuments } from 'yaml';
import Ajv from 'ajv';
const [chart, given] = process.argv.slice(2);
const text = (name) => readFileSync(chart + name, 'utf8');
const values = { ...parse(text('values.yaml')), ...JSON.parse(given) };
const isFit = new Ajv({ strict: false }).compile(JSON.parse(text('values.schema.json')));
const refusals = isFit(values) ? [] : isFit.errors.map(({ instancePath, message }) => instancePath + ' ' + message);
const names = readdirSync(chart + 'templates').filter((name) => name.endsWith('.yaml'));
const of = { Values: values, Release: { Name: 'front', Namespace: 'default' }, Chart: parse(text('Chart.yaml')) };
const objects = [];
for (const name of [...names, 'NOTES.txt']) {
  const shown = await render(text('templates/_names.tpl') + text('templates/' + name), of);
  if (name === 'NOTES.txt') continue;
  for (const document of parseAllDocuments(shown)) {
    if (document.errors.length > 0) throw new Error(name + ': ' + document.errors.join() + shown);
    if (document.toJS() !== null) objects.push(document.toJS());
  }
}
console.log(JSON.stringify({ refusals, objects }));
process.exit();
`;

/** Prints a Compose file, with its merges. */
const COMPOSED = `
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
console.log(JSON.stringify(parse(readFileSync(process.argv[2], 'utf8'), { merge: true })));
`;

const VALUES = {
  publicUrl: 'https://cloud.example.org',
  dataUrl: 'https://data.example.org',
  trustedProxies: '10.0.0.0/8',
  metadataUrl: 'postgresql://cloudlet:p"%2F@db.example:5432/cloudlet',
  blobsUrl: 's3://KEY:SECRET@s3.example/bucket',
  masterKey: '{"current":"0123456789abcdef","keys":{}}\n',
  settings: { CLOUDLET_LOG_LEVEL: 'warn', CLOUDLET_REGISTRATION: 'closed' },
};

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string } };
}

interface Rendered {
  readonly refusals: readonly string[];
  // biome-ignore lint/suspicious/noExplicitAny: objects of Kubernetes
  readonly objects: readonly any[];
}

describe('files for a cluster', () => {
  let npm: NpmFolder;
  let whole: Rendered;
  before(async () => {
    npm = await NpmFolder.with(PACKAGES, { 'render.mjs': RENDER, 'composed.mjs': COMPOSED });
    whole = await render(VALUES);
  });
  after(() => npm?.remove());

  const render = async (values: object): Promise<Rendered> =>
    JSON.parse(await npm.run(['render.mjs', CHART, JSON.stringify(values)], {}));
  const found = ({ objects }: Rendered, kind: string) => objects.find((object) => object.kind === kind);
  const podOf = (rendered: Rendered) => found(rendered, 'Deployment').spec.template.spec;
  const variablesOf = (rendered: Rendered): Variable[] => podOf(rendered).containers[0].env;

  test('compose.cluster.yaml has a host and two fronts, which the proxy knows', async () => {
    const { services, volumes } = JSON.parse(
      await npm.run(['composed.mjs', join(DEPLOY, 'compose.cluster.yaml')], {}),
    );
    const { CLOUDLET_API: apis, CLOUDLET_DATA: datas } = services.caddy.environment;
    const nodes = ['host', 'front-1', 'front-2'];
    assert.equal(apis, nodes.map((name) => `${name}:18080`).join(' '));
    assert.equal(datas, nodes.map((name) => `${name}:19000`).join(' '));
    for (const name of nodes) {
      const { environment: env, restart, read_only, cap_drop, cap_add, healthcheck } = services[name];
      assert.deepEqual([restart, read_only, cap_drop], ['always', true, ['ALL']], name);
      assert.match(healthcheck.test.join(' '), /:18080\/readyz/);
      assert.equal(env.CLOUDLET_NODE_URL, `http://${name}:18080`);
      assert.equal(env.CLOUDLET_COMPUTE, name === 'host' ? undefined : 'off');
      assert.equal(cap_add === undefined, name !== 'host');
      for (const shared of ['PUBLIC_URL', 'DATA_URL', 'TRUSTED_PROXIES', 'METADATA_URL', 'BLOBS_URL'])
        assert.equal(env[`CLOUDLET_${shared}`], services.host.environment[`CLOUDLET_${shared}`]);
    }
    const proxy = services.caddy.networks.inside.ipv4_address;
    assert.equal(services.host.environment.CLOUDLET_TRUSTED_PROXIES, proxy);
    const mounts = Object.values<{ volumes: string[] }>(services).flatMap((service) => service.volumes);
    for (const mount of mounts) {
      const [source = ''] = mount.split(':');
      assert.ok(source.startsWith('./') || source in volumes, mount);
    }
  });

  test('the chart renders what it should, and each object finds its pods', () => {
    assert.deepEqual(whole.refusals, []);
    const kinds = whole.objects.map(({ kind, apiVersion }) => `${apiVersion} ${kind}`).sort();
    assert.deepEqual(kinds, [
      'apps/v1 Deployment',
      'policy/v1 PodDisruptionBudget',
      'v1 Secret',
      'v1 Service',
    ]);
    const { spec } = found(whole, 'Deployment');
    const labels = { 'app.kubernetes.io/name': 'cloudlet', 'app.kubernetes.io/instance': 'front' };
    assert.deepEqual(spec.template.metadata.labels, labels);
    assert.deepEqual(spec.selector.matchLabels, labels);
    assert.deepEqual(found(whole, 'Service').spec.selector, labels);
    const budget = found(whole, 'PodDisruptionBudget').spec;
    assert.deepEqual([budget.selector.matchLabels, budget.maxUnavailable, spec.replicas], [labels, 1, 3]);
    const [container] = podOf(whole).containers;
    const ports = container.ports.map(({ name }: { name: string }) => name);
    for (const { targetPort } of found(whole, 'Service').spec.ports) assert.ok(ports.includes(targetPort));
    const mounted = container.volumeMounts.map(({ name }: { name: string }) => name).sort();
    assert.deepEqual(mounted, ['data', 'master-key', 'tmp']);
    assert.deepEqual(
      podOf(whole)
        .volumes.map(({ name }: { name: string }) => name)
        .sort(),
      mounted,
    );
  });

  test('a pod may do little, is drained before it ends, and is told apart when it is not ready', () => {
    const pod = podOf(whole);
    const [{ securityContext, readinessProbe, livenessProbe, resources }] = pod.containers;
    assert.deepEqual(
      [pod.enableServiceLinks, pod.automountServiceAccountToken, pod.securityContext.runAsNonRoot],
      [false, false, true],
    );
    assert.equal(pod.securityContext.runAsUser, USER);
    assert.deepEqual(securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    assert.equal(readinessProbe.httpGet.path, '/readyz');
    // 5 s of draining are two checks, and 10 s of requests follow.
    assert.ok(readinessProbe.periodSeconds * readinessProbe.failureThreshold * 2 < 5);
    assert.ok(pod.terminationGracePeriodSeconds > 15);
    assert.equal(livenessProbe.httpGet.path, '/healthz');
    assert.deepEqual([resources.requests.memory, resources.limits.memory], ['512Mi', '2Gi']);
  });

  test('secrets come from the Secret, its own or yours, as they were given', async () => {
    const secret = found(whole, 'Secret');
    assert.deepEqual(secret.stringData, {
      'metadata-url': VALUES.metadataUrl,
      'blobs-url': VALUES.blobsUrl,
      'master.key': VALUES.masterKey,
    });
    const { metadataUrl: _m, blobsUrl: _b, masterKey: _k, ...rest } = VALUES;
    const yours = await render({ ...rest, existingSecret: 'mine' });
    assert.deepEqual(yours.refusals, []);
    assert.equal(found(yours, 'Secret'), undefined);
    for (const [rendered, name] of [
      [whole, 'front'],
      [yours, 'mine'],
    ] as const) {
      const refs = variablesOf(rendered).flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []);
      assert.deepEqual(refs, [
        { name, key: 'metadata-url' },
        { name, key: 'blobs-url' },
      ]);
      const volume = podOf(rendered).volumes.find((each: { name: string }) => each.name === 'master-key');
      assert.equal(volume.secret.secretName, name);
    }
  });

  test('values that are missing or mistyped are refused', async () => {
    const refused = async (values: object) => (await render(values)).refusals.join();
    assert.match(await refused({ ...VALUES, publicUrl: '' }), /\/publicUrl must match/);
    assert.match(await refused({ ...VALUES, masterKey: '' }), /\/masterKey must match/);
    assert.match(await refused({ ...VALUES, replica: 2 }), /additional properties/);
    assert.match(await refused({ ...VALUES, settings: { PORT: '1' } }), /property name must be valid/);
  });

  test('a front node starts with the settings and the rights of the pod', {
    skip: noCluster || (process.getuid?.() !== 0 && 'needs root'),
  }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
    const cluster = await Cluster.start(1);
    try {
      const volume = join(folder, 'data');
      const copy = join(folder, 'master.key');
      mkdirSync(volume);
      // As created by the kubelet for fsGroup.
      chownSync(volume, 0, USER);
      chmodSync(volume, 0o2777);
      chmodSync(folder, 0o755);
      writeFileSync(copy, readFileSync(join(cluster.nodes[0]?.dataDir ?? '', 'master.key')));
      chownSync(copy, 0, USER);
      chmodSync(copy, 0o440);
      const given = variablesOf(whole).flatMap(({ name, value }) =>
        value === undefined ? [] : [[name, value]],
      );
      const { CLOUDLET_NODE_URL: url, CLOUDLET_DATA_DIR: dir, ...env } = Object.fromEntries(given);
      assert.deepEqual([url, dir], ['http://$(POD_IP):18080', '/data/node']);
      const rights = [`--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', '--no-new-privs'];
      const port = String(await freePort());
      const api = `http://127.0.0.1:${port}`;
      const own = { CLOUDLET_PORT: port, CLOUDLET_NODE_URL: api, CLOUDLET_MASTER_KEY_FILE: copy };
      await cluster.add(
        { ...env, ...own },
        { dataDir: join(volume, 'node'), wrapper: ['setpriv', ...rights, '--bounding-set=-all'] },
      );
      assert.equal((await fetch(`${api}/readyz`)).status, 200);
      const headers = { 'x-api-key': ADMIN_KEY, 'content-type': 'application/json' };
      const made = { method: 'POST', headers, body: '{"name":"from-the-pod"}' };
      assert.equal((await fetch(`${api}/api/buckets`, made)).status, 201);
      const seen = await fetch(`${cluster.nodes[0]?.api}/api/buckets/from-the-pod`, { headers });
      assert.equal(seen.status, 200);
    } finally {
      await cluster.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
