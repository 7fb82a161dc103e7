/** Our own certificates, as verified by Node's TLS and OpenSSL. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { connect, createServer, type PeerCertificate } from 'node:tls';
import { systemClock } from '../../../platform/clock.ts';
import { makeAuthority, makeServerCertificate } from './certificates.ts';
import { CERT_FILE, KEY_FILE, ServerTls } from './server-tls.ts';

const now = systemClock.now();
const span = { from: now - 60_000, until: now + 3_600_000 };
const authority = makeAuthority('An authority', span);
const names = ['db.example', '127.0.0.1', '2001:db8::1:2', '::1'];
const server = makeServerCertificate({ name: 'An authority', key: authority.key }, names, span);

describe('certificates of our own', () => {
  test('they are well-formed, signed by the authority, and for these names only', () => {
    const [ca, leaf] = [new X509Certificate(authority.cert), new X509Certificate(server.cert)];
    assert.deepEqual([ca.ca, leaf.ca, ca.verify(ca.publicKey)], [true, false, true]);
    assert.deepEqual([leaf.verify(ca.publicKey), leaf.checkIssued(ca)], [true, true]);
    assert.equal(leaf.checkHost('db.example'), 'db.example');
    assert.equal(leaf.checkHost('other.example'), undefined);
    for (const address of names.slice(1)) assert.equal(leaf.checkIP(address), address);
    assert.equal(leaf.checkIP('127.0.0.2'), undefined);
    assert.equal(Math.round(leaf.validToDate.getTime() / 1000), Math.floor(span.until / 1000));
  });

  test('a connection is verified by the authority alone', async (t) => {
    const listener = createServer({ cert: server.cert, key: server.key }, (socket) => socket.end('hello'));
    listener.listen(0, '127.0.0.1');
    t.after(() => listener.close());
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    const subjectOf = async (ca: string) => {
      const socket = connect({ port, host: '127.0.0.1', ca });
      socket.on('data', () => {});
      await once(socket, 'secureConnect');
      const peer = socket.getPeerCertificate() as PeerCertificate;
      socket.destroy();
      return peer.subject.CN;
    };
    assert.equal(await subjectOf(authority.cert), 'db.example');
    const stranger = makeAuthority('An authority', span);
    await assert.rejects(subjectOf(stranger.cert));
  });
});

test("the operator's certificate and key are taken with a byte order mark and CRLF", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-tls-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [certFile, keyFile] = Object.entries({ cert: server.cert, key: server.key }).map(([name, text]) => {
    const path = join(folder, name);
    writeFileSync(path, `\ufeff${text.replaceAll('\n', '\r\n')}`);
    return path;
  }) as [string, string];
  const tls = new ServerTls({ host: 'db.example', certFile, keyFile, folder, clock: systemClock });
  const home = join(folder, 'home');
  mkdirSync(home);
  tls.install(home, null);
  for (const name of [CERT_FILE, KEY_FILE])
    assert.match(readFileSync(join(home, name), 'utf8'), /^-----BEGIN /);
  const listener = createServer(tls.certificate(), (socket) => socket.end());
  listener.listen(0, '127.0.0.1');
  t.after(() => listener.close());
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const ca = authority.cert.replaceAll('\n', '\r\n');
  await once(connect({ port, host: '127.0.0.1', ca }).resume(), 'secureConnect');
});

test('its own host in connection strings changes the name, not the addresses to listen on', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-tls-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const options = { certFile: '', keyFile: '', folder, clock: systemClock };
  const tls = new ServerTls({ ...options, host: '127.0.0.2', shownHost: 'db.example' });
  assert.deepEqual([tls.host, tls.isRequired, tls.listen], ['db.example', true, ['127.0.0.1', '127.0.0.2']]);
  const certificate = new X509Certificate(tls.certificate().cert);
  assert.equal(certificate.checkHost('db.example'), 'db.example');
  assert.equal(certificate.checkIP('127.0.0.2'), '127.0.0.2');
});
