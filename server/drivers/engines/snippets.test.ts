import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { EngineDescription } from '../../databases/engine-description.ts';
import { MONGODB } from './mongodb/about.ts';
import { MYSQL } from './mysql/about.ts';
import { POSTGRESQL } from './postgresql/about.ts';
import { SQLITE } from './sqlite/about.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const address = 'http://127.0.0.1:9000/db/db-1/';
const plain = { password: 'secret', tls: false, hasCa: false };
const snippets = SQLITE.snippets({ uri: `${address}?authToken=secret`, ...plain });

test('each has the address, with its slash, and the password', () => {
  assert.deepEqual(Object.keys(snippets), ['cli', 'node', 'python', 'go', 'php']);
  for (const [language, code] of Object.entries(snippets)) {
    assert.ok(code.includes(address), language);
    assert.ok(code.includes('secret'), language);
  }
  assert.ok(snippets.cli.includes(`'${address}v2/pipeline'`));
});

const postgresql = POSTGRESQL.snippets({ uri: 'postgresql://u_1:secret@127.0.0.1:5432/d_1', ...plain });
const mysqlUri = 'mysql://u_1:secret@127.0.0.1:3306/d_1';
const mysql = MYSQL.snippets({ uri: mysqlUri, ...plain });
const mysqlTls = MYSQL.snippets({ uri: mysqlUri, ...plain, tls: true, hasCa: true });

test('with TLS each names the file with the certificate to trust, or asks for a verified one', () => {
  for (const code of [mysqlTls.cli, mysqlTls.node, mysqlTls.python, mysqlTls.php])
    assert.ok(code.includes('ca.pem'), code);
  assert.match(mysqlTls.go, /os\.ReadFile\("ca\.pem"\)[\s\S]*\?tls=cloudlet"/);
  const uri = 'postgresql://u_1:secret@db.example:5432/d_1?sslmode=verify-full&sslrootcert=ca.pem';
  const { cli, php } = POSTGRESQL.snippets({ uri, ...plain, tls: true, hasCa: true });
  assert.ok(cli.includes(uri));
  assert.match(php, /\$url\['query'\]/);
});

const mongodb = MONGODB.snippets({
  uri: 'mongodb://u_1:secret@127.0.0.1:27117/d_1?authSource=d_1',
  ...plain,
});

test('frameworks get what they ask for, with TLS where it is', () => {
  const names = (engine: EngineDescription, uri: string) =>
    engine.frameworks({ uri, ...plain }).map(({ framework }) => framework);
  const pg = 'postgresql://u_1:secret@127.0.0.1:5432/d_1';
  assert.deepEqual(names(POSTGRESQL, pg), ['Django', 'Rails', 'Laravel', 'Prisma']);
  assert.deepEqual(names(MONGODB, 'mongodb://u_1:secret@127.0.0.1:27117/d_1'), ['mongoose']);
  assert.deepEqual(names(SQLITE, address), []);
  for (const tls of [false, true])
    for (const [engine, uri] of [
      [POSTGRESQL, tls ? `${pg}?sslmode=verify-full&sslrootcert=ca.pem` : pg],
      [MYSQL, mysqlUri],
    ] as const)
      for (const { framework, file, code } of engine.frameworks({ uri, ...plain, tls, hasCa: tls })) {
        assert.match(code, /secret/, framework);
        assert.doesNotMatch(code, /undefined|null/, framework);
        assert.equal(/ca\.pem|verify/.test(code), tls, `${framework} ${file}\n${code}`);
        // Rails and Laravel prefer a URL to the name of their test database.
        if (framework === 'Rails') assert.match(code, /test:\n.*\n {2}database: test_d_1\n$/);
        if (framework !== 'Prisma') assert.doesNotMatch(code, /url/i, framework);
      }
});

test('the one for Node is a module that Node can read', () => {
  const file = join(folder, 'snippet.mjs');
  const check = (code: string) => {
    writeFileSync(file, code);
    return spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' });
  };
  const { status, stderr } = check(snippets.node);
  assert.equal(status, 0, stderr);
  assert.equal(check(postgresql.node).status, 0);
  assert.equal(check(mongodb.node).status, 0);
  for (const { node } of [mysql, mysqlTls]) assert.equal(check(node).status, 0);
  assert.notEqual(check(`${snippets.node} )`).status, 0, 'one with a mistake is refused');
});
