import assert from 'node:assert/strict';
import { isAbsolute } from 'node:path';
import { test } from 'node:test';
import { ignoredSettings, loadConfig, poolThreads, renderSettings } from './config.ts';
import { parseMailFrom, parseSmtpUrl } from './mail-settings.ts';
import { registrationDomains, registrationOf } from './registrations.ts';

test('without settings everything has its default, and nothing listens to the outside', () => {
  const config = loadConfig({});
  assert.deepEqual([config.host, config.port, config.dataPort], ['127.0.0.1', 8080, 9000]);
  assert.equal(config.adminKey, '');
  assert.ok(isAbsolute(config.dataDir) && config.dataDir.endsWith('data'));
  assert.ok(Object.isFrozen(config));
});

test('a setting is read from its variable; variables of others are left alone', () => {
  const config = loadConfig({ CLOUDLET_PORT: '0', CLOUDLET_LOG_LEVEL: 'debug', PATH: '/bin' });
  assert.deepEqual([config.port, config.logLevel, config.dataPort], [0, 'debug', 9000]);
});

test('a bad value is refused with the name of its variable', () => {
  const bad: readonly [string, string][] = [
    ['CLOUDLET_PORT', ''],
    ['CLOUDLET_PORT', '-1'],
    ['CLOUDLET_PORT', '65536'],
    ['CLOUDLET_PORT', '80.5'],
    ['CLOUDLET_PORT', ' 80'],
    ['CLOUDLET_PORT', '0x50'],
    ['CLOUDLET_PORT', '1e3'],
    ['CLOUDLET_MAX_CONNECTIONS', '9'],
    ['CLOUDLET_HOST', ''],
    ['CLOUDLET_DATA_DIR', ''],
    ['CLOUDLET_LOG_LEVEL', 'loud'],
    ['CLOUDLET_LOG_LEVEL', ''],
    ['CLOUDLET_ADMIN_KEY', 'x'.repeat(23)],
    ['CLOUDLET_ADMIN_KEY', 'x'.repeat(513)],
    ['CLOUDLET_ADMIN_KEY', `${'x'.repeat(30)} y`],
    ['CLOUDLET_ADMIN_KEY', 'ü'.repeat(30)],
    ['CLOUDLET_PUBLIC_URL', 'cloud.example'],
    ['CLOUDLET_PUBLIC_URL', 'https://cloud.example/'],
    ['CLOUDLET_MEMORY_OVERCOMMIT', '0.09'],
    ['CLOUDLET_MEMORY_OVERCOMMIT', '65'],
    ['CLOUDLET_MEMORY_OVERCOMMIT', '150%'],
    ['CLOUDLET_DATA_URL', 'ftp://cloud.example'],
  ];
  for (const [name, value] of bad) {
    assert.throws(
      () => loadConfig({ [name]: value }),
      new RegExp(`^\\w*Error: ${name}: must`),
      `${name}=${value}`,
    );
  }
});

test('the edges of good values are accepted', () => {
  const good: readonly [string, string][] = [
    ['CLOUDLET_PORT', '65535'],
    ['CLOUDLET_MAX_CONNECTIONS', '10'],
    ['CLOUDLET_ADMIN_KEY', 'x'.repeat(24)],
    ['CLOUDLET_ADMIN_KEY', 'x'.repeat(512)],
    ['CLOUDLET_ADMIN_KEY', ''],
    ['CLOUDLET_PUBLIC_URL', 'https://cloud.example:8443'],
    ['CLOUDLET_SCRUB_DAYS', '0'],
  ];
  for (const [name, value] of good)
    assert.doesNotThrow(() => loadConfig({ [name]: value }), `${name}=${value}`);
});

test('a misspelt setting is refused, and the one that was meant is named', () => {
  assert.throws(
    () => loadConfig({ CLOUDLET_PROT: '80' }),
    /unknown setting CLOUDLET_PROT \(did you mean CLOUDLET_PORT\?\); see docs\/settings.md/,
  );
  const unlike = { CLOUDLET_COLOUR_OF_THE_SKY: 'blue', CLOUDLET_LOGLEVEL: 'info' };
  assert.throws(
    () => loadConfig(unlike),
    /unknown setting CLOUDLET_COLOUR_OF_THE_SKY, CLOUDLET_LOGLEVEL \(did you mean CLOUDLET_LOG_LEVEL\?\);/,
  );
});

/** Variables that Kubernetes sets for a Service named `cloudlet`, and for one named `cloudlet-data`. */
const SERVICE_LINKS = {
  CLOUDLET_PORT: 'tcp://10.96.0.7:8080',
  CLOUDLET_PORT_8080_TCP: 'tcp://10.96.0.7:8080',
  CLOUDLET_PORT_8080_TCP_ADDR: '10.96.0.7',
  CLOUDLET_PORT_8080_TCP_PORT: '8080',
  CLOUDLET_PORT_8080_TCP_PROTO: 'tcp',
  CLOUDLET_SERVICE_HOST: '10.96.0.7',
  CLOUDLET_SERVICE_PORT: '8080',
  CLOUDLET_SERVICE_PORT_HTTP: '8080',
  CLOUDLET_DATA_PORT: 'tcp://10.96.0.8:9000',
  CLOUDLET_DATA_SERVICE_HOST: '10.96.0.8',
};

test("variables that Kubernetes makes for a Service are ignored, and others' mistakes still refused", () => {
  const config = loadConfig({
    ...SERVICE_LINKS,
    CLOUDLET_HOST: '0.0.0.0',
    KUBERNETES_PORT: 'tcp://10.96.0.1:443',
  });
  assert.deepEqual([config.host, config.port, config.dataPort], ['0.0.0.0', 8080, 9000]);
  const line = ignoredSettings(SERVICE_LINKS) ?? '';
  assert.match(line, / ignored: CLOUDLET_DATA_PORT and 9 more; CLOUDLET_PORT defaults to 8080; /);
  assert.match(line, /enableServiceLinks: false/);
  assert.equal(ignoredSettings({ CLOUDLET_PORT: '80', KUBERNETES_PORT: 'tcp://10.96.0.1:443' }), null);
  assert.throws(
    () => loadConfig({ ...SERVICE_LINKS, CLOUDLET_SERVICE_HOTS: 'x' }),
    /unknown setting CLOUDLET_SERV/,
  );
  for (const [env] of renderSettings().matchAll(/CLOUDLET_\w+/g))
    assert.equal(ignoredSettings({ [env]: '1' }), null, env);
});

test('an option goes before its variable, and is named when it is wrong', () => {
  const environment = { CLOUDLET_PORT: '80', CLOUDLET_DATA_DIR: '/srv/a' };
  const config = loadConfig(environment, { port: '81', 'data-dir': '/srv/b', username: 'ada' });
  assert.deepEqual([config.port, config.dataDir], [81, '/srv/b']);
  assert.equal(loadConfig(environment, { port: '81' }).dataDir, '/srv/a');
  assert.throws(() => loadConfig(environment, { port: '81a' }), /^Error: --port: must be a whole/);
  assert.throws(() => loadConfig(environment, { 'data-dir': '' }), /^Error: --data-dir: must not be/);
});

test('one port cannot be both', () => {
  assert.throws(
    () => loadConfig({ CLOUDLET_PORT: '9000' }),
    /CLOUDLET_PORT and CLOUDLET_DATA_PORT are both 9000; they must differ/,
  );
  assert.doesNotThrow(() => loadConfig({ CLOUDLET_PORT: '0', CLOUDLET_DATA_PORT: '0' }));
});

test('the table for docs/settings.md has every setting with its default', () => {
  const table = renderSettings();
  assert.ok(table.includes('| `CLOUDLET_PORT` | `8080` |'));
  assert.ok(table.includes('| `CLOUDLET_ADMIN_KEY` |  |'));
  const rows = table.split('\n').slice(2);
  assert.equal(rows.length, Object.keys(loadConfig({})).length);
  for (const row of rows) assert.match(row, /^\| `CLOUDLET_[A-Z\d_]+` \| .* \| .+ \|$/);
});

test("the size of libuv's pool is what libuv makes of its variable", () => {
  for (const [given, size] of [
    [undefined, 4],
    ['16', 16],
    ['', 1],
    ['many', 1],
  ] as const) {
    assert.equal(poolThreads(given === undefined ? {} : { UV_THREADPOOL_SIZE: given }), size);
  }
});

test('origins for CORS are as browsers send them', () => {
  const read = (value: string) => loadConfig({ CLOUDLET_CORS_ORIGINS: value }).corsOrigins;
  for (const good of ['', '*', 'https://a.example', 'http://localhost:3000,https://b.example:8443'])
    assert.equal(read(good), good);
  const bad = [
    'https://a.example/',
    'HTTPS://a.example',
    'a.example',
    'https://a.example:443',
    'null',
    ',',
    '* ',
  ];
  for (const value of bad) assert.throws(() => read(value), /CLOUDLET_CORS_ORIGINS: must be origins/, value);
});

test('the URL of a database server is refused without its password being repeated', () => {
  const name = 'CLOUDLET_POSTGRESQL_URL';
  for (const [setting, url] of [
    [name, 'mysql://u:hidden@h/d'],
    [name, 'postgresql://h/hidden'],
    [name, 'postgresql://u:hidden@h/d?sslmode=prefer'],
    ['CLOUDLET_MYSQL_URL', 'postgresql://u:hidden@h'],
    ['CLOUDLET_MYSQL_URL', 'mysql://hidden'],
  ] as const)
    assert.throws(
      () => loadConfig({ [setting]: url }),
      ({ message }: Error) => message.startsWith(setting) && !message.includes('hidden'),
    );
  const right = 'postgres://u:p%40ss@db.example:6543/d?sslmode=verify-full&sslrootcert=/ca.pem';
  assert.equal(loadConfig({ [name]: right }).postgresqlUrl, right);
});

test('the domain of machines is not above a name of the cloud, nor are published ports those of databases', () => {
  const apps = { CLOUDLET_APPS_DOMAIN: 'example.org' };
  for (const [name, value] of [
    ['CLOUDLET_PUBLIC_URL', 'https://cloud.example.org'],
    ['CLOUDLET_DATA_URL', 'https://data.example.org'],
    ['CLOUDLET_S3_DOMAIN', 's3.example.org'],
  ] as const) {
    assert.throws(
      () => loadConfig({ ...apps, [name]: value }),
      /must not be a parent domain of \w+\.example\.org/,
    );
  }
  assert.equal(
    loadConfig({ ...apps, CLOUDLET_DATA_URL: 'https://data.example.net' }).appsDomain,
    'example.org',
  );
  assert.throws(() => loadConfig({ CLOUDLET_PUBLISHED_PORTS: '20000-26000' }), /first port of database/);
});

test('mail: a server needs a sender, and an address of the cloud that others can reach', () => {
  const [url, from] = ['smtps://cloud:secret%40@mail.example.org', 'A cloud <cloud@example.org>'];
  const set = { CLOUDLET_SMTP_URL: url, CLOUDLET_MAIL_FROM: from };
  const server = { host: 'mail.example.org', port: 465, tls: 'smtps', user: 'cloud', password: 'secret@' };
  assert.deepEqual(parseSmtpUrl(loadConfig(set).smtpUrl), server);
  assert.deepEqual(parseMailFrom(from), { name: 'A cloud', address: 'cloud@example.org' });
  const tls = (text: string) => parseSmtpUrl(text).tls;
  const urls = ['smtp://m.example', 'smtp://127.0.0.1', 'smtp://m.example:25?tls=off'];
  assert.deepEqual(urls.map(tls), ['starttls', 'off', 'off']);
  assert.equal(tls('smtp://127.0.0.1?tls=starttls'), 'starttls');
  const wrong: readonly (readonly [Record<string, string>, RegExp])[] = [
    [{ CLOUDLET_SMTP_URL: url }, /needs CLOUDLET_MAIL_FROM/],
    [{ ...set, CLOUDLET_HOST: '0.0.0.0' }, /needs CLOUDLET_PUBLIC_URL/],
    [{ ...set, CLOUDLET_SMTP_URL: 'http://mail.example.org' }, /^CLOUDLET_SMTP_URL: must be like smtps/],
    [{ ...set, CLOUDLET_SMTP_URL: 'mail.example.org:25' }, /^CLOUDLET_SMTP_URL: must be like smtps/],
    [{ ...set, CLOUDLET_SMTP_URL: 'smtp://u:50%@m.example' }, /^CLOUDLET_SMTP_URL: has a %/],
    [{ ...set, CLOUDLET_SMTP_URL: 'smtps://m.example?tls=starttls' }, /^CLOUDLET_SMTP_URL: may have/],
    [{ ...set, CLOUDLET_SMTP_URL: 'smtp://u:secret@mail.example.org?tls=off' }, /without TLS/],
    [{ ...set, CLOUDLET_MAIL_FROM: 'a@b.example, c@d.example' }, /must be like/],
    [{ ...set, CLOUDLET_MAIL_FROM: 'a@b.example\r\nBcc: c@d.example' }, /must be like/],
    [{ CLOUDLET_REGISTRATION: 'domain:example.org' }, /needs CLOUDLET_SMTP_URL/],
    [{ ...set, CLOUDLET_REGISTRATION: 'domain:' }, /domain:example\.org/],
  ];
  for (const [environment, problem] of wrong) {
    assert.throws(
      () => loadConfig(environment),
      (error: Error) => {
        return problem.test(error.message) && !error.message.includes('secret');
      },
    );
  }
  const byDomain = loadConfig({ ...set, CLOUDLET_REGISTRATION: 'domain:example.org,example.net' });
  assert.equal(registrationOf(byDomain), 'domain');
  assert.deepEqual(registrationDomains(byDomain), ['example.org', 'example.net']);
});

test('a host for connection strings needs databases that listen for other hosts', () => {
  const shown = { CLOUDLET_PUBLIC_DATABASE_HOST: 'db.example.org' };
  assert.throws(() => loadConfig(shown), /needs CLOUDLET_DATABASE_HOST/);
  const { publicDatabaseHost } = loadConfig({ ...shown, CLOUDLET_DATABASE_HOST: '10.0.0.2' });
  assert.equal(publicDatabaseHost, 'db.example.org');
});
