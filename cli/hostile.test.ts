/**
 * The client against a hostile cloud: its text reaches neither the terminal, nor a shell, nor other folders.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { runClient } from './tunnels/db-clients.ts';

const PROGRAM = join(import.meta.dirname, '../build/cli/cloudlet.mjs');
const home = mkdtempSync(join(tmpdir(), 'cloudlet-hostile-'));
after(() => rmSync(home, { recursive: true }));

type Lie = (request: IncomingMessage, response: ServerResponse) => void;
let lie: Lie;
const seen: string[] = [];
const server = createServer((request, response) => {
  seen.push(`${request.url} ${request.headers['x-api-key'] ?? ''}`);
  lie(request, response);
}).listen(0, '127.0.0.1');
await once(server, 'listening');
after(() => server.close().closeAllConnections());
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const ESCAPE = '\u001b]0;owned\u0007\u009b31m\u202e';
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
const RAW = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/;

async function run(args: readonly string[], path = process.env.PATH) {
  const keys = { CLOUDLET_ACCESS_KEY_ID: 'A', CLOUDLET_SECRET_ACCESS_KEY: 'S', CLOUDLET_S3_URL: url };
  const env = { PATH: path, HOME: home, CLOUDLET_URL: url, CLOUDLET_API_KEY: 'clk_secret', ...keys };
  const child = spawn(process.execPath, ['--max-old-space-size=300', PROGRAM, ...args], { env, cwd: home });
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text;
  });
  child.stdin.end();
  const [code] = await once(child, 'close');
  return { code, out, err };
}

const json = (body: unknown, status = 200): Lie => {
  return (_, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

/** A page of a list whose ETags contain `mark`. */
function listed(keys: readonly string[], mark = ''): string {
  const entries = keys.map((key) => {
    return `<Contents><Key>${encodeURIComponent(key)}</Key><Size>4</Size><ETag>"e${mark}"</ETag></Contents>`;
  });
  return `<ListBucketResult>${entries.join('')}</ListBucketResult>`;
}

test('names, ETags, refusals and JSON move no cursor', async () => {
  const referred = ESCAPE.replace(/[^ -~]/g, (mark) => `&#x${mark.charCodeAt(0).toString(16)};`);
  lie = (_, response) => void response.end(listed([`a${ESCAPE}`], referred));
  for (const args of [['ls', '-r'], ['ls', '-l'], ['ls', '--json'], ['tree']]) {
    const { out, err, code } = await run([...args, 's3://b']);
    assert.equal(code, 0, err);
    assert.match(out, /owned/);
    assert.doesNotMatch(out + err, RAW, args.join(' '));
  }
  assert.equal(JSON.parse((await run(['ls', '--json', 's3://b'])).out).key, `a${ESCAPE}`);
  lie = (_, response) => void response.end(listed(['a'], ESCAPE));
  const unread = await run(['ls', 's3://b']);
  assert.match(unread.err, /not valid S3 XML \(a control character\)/);
  assert.doesNotMatch(unread.err, RAW);
  lie = json({ code: 'not_found', detail: `gone ${ESCAPE}`, hint: ESCAPE, status: 404 }, 404);
  const refused = await run(['whoami']);
  assert.equal(refused.code, 5);
  assert.match(refused.err, /gone/);
  assert.doesNotMatch(refused.err, RAW);
});

test('a dry run prints no raw name either', async () => {
  const object = {
    id: 'o',
    name: `x${ESCAPE}`,
    size: 1,
    etag: 'e',
    created_at: '2026-01-01 00:00:00',
    metadata: {},
  };
  lie = json([object]);
  const { out, err } = await run(['sync', '--dry-run', 's3://b', 'target']);
  assert.match(out, /owned/, err);
  assert.doesNotMatch(out + err, RAW);
});

test('a redirect is not followed, so that no other address gets the key', async () => {
  lie = (request, response) => {
    if (request.url?.startsWith('/other')) response.end('{}');
    else response.writeHead(302, { location: `${url}/other` }).end();
  };
  for (const args of [['whoami'], ['api', 'GET', '/api/account'], ['vm', 'ls']]) {
    seen.length = 0;
    const { code, err } = await run(args);
    assert.equal(code, 1, err);
    assert.equal(seen.length, 1, seen.join());
  }
});

test('an endless answer and a list that does not go on end the command', async () => {
  lie = (_, response) => {
    const piece = Buffer.alloc(1024 * 1024, ' ');
    const more = () => {
      while (response.write(piece));
    };
    response.writeHead(200, { 'content-type': 'application/json' }).on('drain', more);
    more();
  };
  for (const args of [['whoami'], ['ls', 's3://b']]) {
    const { code, err } = await run(args);
    assert.equal(code, 1, err);
    assert.match(err, /not from Cloudlet|too large/);
  }
  lie = (_, response) => void response.end('<r><NextContinuationToken>same</NextContinuationToken></r>');
  assert.match((await run(['ls', 's3://b'])).err, /the same page/);
  const next = '<NextKeyMarker>k</NextKeyMarker><NextVersionIdMarker>v</NextVersionIdMarker>';
  lie = (_, response) => void response.end(`<r><IsTruncated>true</IsTruncated>${next}</r>`);
  assert.match((await run(['ls', '--versions', 's3://b'])).err, /the same page/);
});

test('a list of the API that goes on without end, or in a circle, ends the command in bounded memory', async () => {
  let pages = 0;
  const many = Array.from({ length: 1000 }, (_, at) => ({
    name: `n${at}`,
    vm_id: `vm-${at}`,
    state: 'running',
  }));
  const endless = (cursorOf: () => string): Lie => {
    return (_, response) => {
      pages += 1;
      const link = `</api/vms?cursor=${cursorOf()}>; rel="next"`;
      response.writeHead(200, { 'content-type': 'application/json', link }).end(JSON.stringify(many));
    };
  };
  lie = endless(() => 'same');
  assert.match((await run(['vm', 'ls'])).err, /not from Cloudlet/);
  assert.equal(pages, 2);
  lie = endless(() => String(pages));
  for (const args of [
    ['vm', 'ls'],
    ['vm', 'show', 'other'],
  ]) {
    pages = 0;
    const { code, err } = await run(args);
    assert.equal(code, 1, err);
    assert.match(err, /more than 200000 entries/);
    assert.ok(pages <= 201, String(pages));
  }
});

test('a cloud that asks for polls without pause, or for ever, gets neither', async () => {
  for (const [interval, expires_in] of [
    [0, 3],
    [-1e9, 3],
    [null, 3],
    [1e300, -5],
    [0, null],
  ]) {
    let polls = 0;
    lie = (request, response) => {
      if (request.url?.endsWith('/key')) {
        polls += 1;
        json({ code: 'authorization_pending', detail: 'wait', status: 400 }, 400)(request, response);
      } else
        json(
          { device_code: 'd', user_code: `BCDF${ESCAPE}`, verification_uri: url, interval, expires_in },
          201,
        )(request, response);
    };
    const { code, err } = await run(['login', url, '--device']);
    assert.equal(code, 124, err);
    assert.ok(polls <= 3, `${polls} polls in 3 s`);
    assert.doesNotMatch(err, RAW);
  }
});

test('a download has the length that was told', async () => {
  lie = (request, response) => {
    if (request.method === 'HEAD') response.writeHead(200, { etag: '"e"', 'content-length': '4' }).end();
    else for (let count = 0; count < 3; count++) response.write('more than that');
    if (request.method !== 'HEAD') response.end();
  };
  const { code, err } = await run(['cp', 's3://b/a', 'here']);
  assert.equal(code, 1);
  assert.match(err, /does not have the length/);
  assert.ok(!readdirSync(home).includes('here'));
  // Killed in the middle, and then an endpoint without ranges: it starts again.
  const of = createHash('sha256').update(['b', 'a', '', 'e', 'here'].join('\0')).digest('hex');
  writeFileSync(join(home, `.cloudlet-${of.slice(0, 16)}.part`), 'te');
  lie = (_, response) => void response.writeHead(200, { etag: '"e"', 'content-length': '4' }).end('text');
  assert.match((await run(['cp', 's3://b/a', 'here'])).err, /cannot be resumed[\s\S]*Run the command again/);
  assert.equal((await run(['cp', 's3://b/a', 'here'])).code, 0);
  assert.equal(readFileSync(join(home, 'here'), 'utf8'), 'text');
});

test('no time that a cloud tells keeps a file from being downloaded', async () => {
  for (const [at, [mtime, modified]] of [
    ['9e99', 'Thu, 01 Jan 1970 00:00:00 GMT'],
    ['-1e30', 'never'],
    ['x', 'Sat, 01 Jan 275000 00:00:00 GMT'],
    ['Infinity', '-271821-04-20T00:00:00Z'],
  ].entries()) {
    lie = (_, response) => {
      const headers = {
        etag: '"e"',
        'content-length': '4',
        'x-amz-meta-mtime': mtime,
        'last-modified': modified,
      };
      response.writeHead(200, headers as Record<string, string>).end('text');
    };
    const { code, err } = await run(['cp', `s3://b/t${at}`, `t${at}`]);
    assert.equal(code, 0, `${mtime} ${modified}: ${err}`);
    assert.equal(readFileSync(join(home, `t${at}`), 'utf8'), 'text');
  }
});

test('sizes and lists that cannot be end the command at once', async () => {
  for (const size of ['9007199254740991', '99999999999999999999', '-1', 'x']) {
    lie = (request, response) => {
      if (request.url?.includes('list-type'))
        response.end(listed(['a']).replace('<Size>4<', `<Size>${size}<`));
      else if (request.url?.startsWith('/api')) json([])(request, response);
      else response.writeHead(200, { etag: '"e"', 'content-range': `bytes 0-3/${size}` }).end('text');
    };
    const { code } = await run(['cp', '-r', '--timeout', '60', 's3://b', `sizes${size}/`]);
    assert.notEqual(code, 0, size);
    assert.notEqual(code, 124, size);
  }
  const names = ['&#x110000;', '&#xffffffffffff;', '%', '%ff'];
  for (const name of names) {
    lie = (_, response) => void response.end(`<r><Contents><Key>${name}</Key><Size>1</Size></Contents></r>`);
    const { code, err } = await run(['ls', '-r', 's3://b']);
    assert.ok(code === 0 || code === 1, err);
    assert.doesNotMatch(err, /\n\s+at /);
  }
});

test('no name leads through a link out of the target, and a foretold link is not followed', async () => {
  const outside = join(home, 'outside');
  mkdirSync(outside);
  mkdirSync(join(home, 'in'));
  symlinkSync(outside, join(home, 'in/dir'));
  // Another user of the folder knows the temporary name of the file.
  const of = createHash('sha256').update(['b', 'foretold', '', 'e', 'in/foretold'].join('\0')).digest('hex');
  symlinkSync(join(outside, 'stolen'), join(home, 'in', `.cloudlet-${of.slice(0, 16)}.part`));
  lie = (request, response) => {
    if (request.url?.includes('list-type'))
      response.end(listed(['dir/passwd', 'dir/../../x', '/abs', 'foretold', 'good']));
    else response.writeHead(200, { etag: '"e"', 'content-length': '4' }).end('text');
  };
  const { code, err } = await run(['cp', '-r', 's3://b', 'in/']);
  assert.equal(code, 7, err);
  assert.match(err, /in\/dir is a symbolic link/);
  assert.deepEqual(readdirSync(outside), []);
  assert.deepEqual(
    readdirSync(join(home, 'in')).filter((name) => !name.startsWith('.')),
    ['dir', 'good'],
  );
  assert.ok(!readdirSync(home).includes('x'));
});

test('no id of a machine is a command, and no name of one is a pattern of hosts', async () => {
  const vm = { name: 'web', state: 'running', vm_id: 'vm-1; touch owned' };
  const lieAbout = (one: object): Lie => {
    return (request, response) => {
      if (request.url?.startsWith('/api/vms?')) json([one])(request, response);
      else if (request.url?.includes('/log')) response.writeHead(200, { 'content-type': 'text/plain' }).end();
      else json({ ...one, ready_at: 'now' })(request, response);
    };
  };
  lie = lieAbout(vm);
  for (const args of [
    ['vm', 'ssh', 'web'],
    ['vm', 'ssh-config', 'web'],
    ['vm', 'cp', 'web:a', 'b'],
  ]) {
    const { code, err } = await run(args);
    assert.equal(code, 1, err);
    assert.match(err, /invalid machine ID/);
  }
  assert.ok(!readdirSync(home).includes('owned'));
  lie = lieAbout({ ...vm, name: '*', vm_id: `vm-${'a'.repeat(26)}` });
  const { out, err } = await run(['vm', 'ssh-config', '*']);
  assert.match(out, /^Host vm-a{26}\n/, err);
});

test('what a cloud says of a database is no option of its client', async () => {
  const folder = join(home, 'bin');
  mkdirSync(folder);
  const said = join(home, 'said');
  const script = [
    '#!/bin/sh',
    `for word; do echo "$word"; done >'${said}'`,
    `cat "\${1#*=}" >>'${said}'`,
    '',
  ];
  writeFileSync(join(folder, 'mariadb'), script.join('\n'), { mode: 0o755 });
  const { installedClient } = await import('./tunnels/db-clients.ts');
  const before = process.env.PATH;
  process.env.PATH = `${folder}:${before}`;
  const clientOf = (...programs: string[]) => installedClient({ client: { programs, package: 'p' } });
  // A program named by the cloud that this client does not know is never run.
  for (const program of ['sh', 'constructor', `${folder}/mariadb`])
    assert.equal(clientOf(program), undefined);
  const client = clientOf('sh', 'mariadb');
  assert.ok(client !== undefined);
  const names = { username: 'u\npager=sh', password: 'p"\n', database: '--pager=sh' };
  const connection = { host: 'h', port: 1, tls: false, uri: '', ...names };
  const code = await runClient(client, { connection: connection as never, ca: null, port: 1, words: [] });
  process.env.PATH = before;
  assert.equal(code, 0);
  const text = readFileSync(said, 'utf8');
  assert.match(text, /^--defaults-file=\/dev\/fd\/3\n--database=--pager=sh\n/);
  assert.doesNotMatch(text, /^pager/m);
  assert.match(text, /^user="u\\npager=sh"$/m);
});

test('a request that no browser sends does not end a log-in', async () => {
  lie = json({});
  const env = { PATH: process.env.PATH, HOME: home, BROWSER: 'true' };
  const child = spawn(process.execPath, [PROGRAM, 'login', url], { env, cwd: home });
  const ended = once(child, 'close');
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text;
  });
  for (let tries = 0; !/127\.0\.0\.1%3A\d+/.test(err) && tries < 500; tries++) await sleep(20);
  const port = Number(/redirect=http%3A%2F%2F127\.0\.0\.1%3A(\d+)/.exec(err)?.[1]);
  for (const path of ['//', '//[', '/callback?state=x', 'http://[']) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.end(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`);
    assert.match(await text(socket), /^HTTP\/1\.1 404 /, path);
  }
  assert.equal(child.exitCode, null, err);
  child.kill('SIGINT');
  await ended;
});
