import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KnownImageAddresses, sumIn } from './known-image-fetch.ts';
import { KNOWN_IMAGES, type KnownImage } from './known-images.ts';

const [SHA256, OTHER] = ['a1'.repeat(32), 'b2'.repeat(32)];
const SHA512 = 'C3'.repeat(64);

test('sums of each way that makers list them', () => {
  const debian = `${'0'.repeat(128)}  disk.raw\n${SHA512}  disk.qcow2\n`;
  assert.equal(sumIn(debian, 'disk.qcow2', 'sha512'), SHA512.toLowerCase());
  const ubuntu = `${OTHER} *disk.img.manifest\r\n${SHA256} *disk.img\r\n`;
  assert.equal(sumIn(ubuntu, 'disk.img', 'sha256'), SHA256);
  const fedora = `-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n# disk.qcow2: 5 bytes\nSHA256 (disk.qcow2) = ${SHA256}\n-----BEGIN PGP SIGNATURE-----\nxyz\n`;
  assert.equal(sumIn(fedora, 'disk.qcow2', 'sha256'), SHA256);
  assert.equal(sumIn(`${SHA512}\n`, 'disk.qcow2', 'sha512'), SHA512.toLowerCase());
});

test('no sum: of another file, of another length, two of them', () => {
  const none = [
    ...['', `${SHA256}  disk.qcow2.sig`, `${SHA256}  old/disk.qcow2`, `SHA512 (disk.qcow2) = ${SHA256}`],
    ...[SHA512, `${SHA256}x  disk.qcow2`, `${SHA256}  disk.qcow2\n${OTHER}  disk.qcow2`],
    ...[`${SHA256}\n${OTHER}\n`, '<html>disk.qcow2</html>'],
  ];
  for (const text of none) assert.equal(sumIn(text, 'disk.qcow2', 'sha256'), null, text);
});

test('each entry: HTTPS, a sum from the same host or of the right length, a name as machines take it', () => {
  for (const [name, known] of KNOWN_IMAGES) {
    assert.match(name, /^[a-z]+-\d+(?:\.\d+)?$/);
    assert.match(known.url, /^https:\/\/[^?#]+\.(?:qcow2|img)$/);
    const { sum, algorithm } = known;
    if ('pinned' in sum)
      assert.match(sum.pinned, algorithm === 'sha256' ? /^[0-9a-f]{64}$/ : /^[0-9a-f]{128}$/);
    else assert.equal(new URL(sum.url).origin, new URL(known.url).origin, name);
  }
});

test('without a mirror only the hosts of the entry are asked, over HTTPS; with one, only the mirror', () => {
  const known = KNOWN_IMAGES.get('debian-13') as KnownImage;
  const outbound = { assertAllowed: async () => {}, fetch: () => Promise.reject() };
  const asks = (mirror: string) => {
    const addresses = new KnownImageAddresses(outbound, mirror);
    const { mayAsk } = addresses.limits(known, addresses.of(known.url));
    return (url: string) => mayAsk?.(new URL(url));
  };
  const makers = asks('');
  assert.equal(makers(known.url), true);
  assert.equal(makers('https://laotzu.ftp.acc.umu.se/images/x'), true);
  const refused = [
    'http://cloud.debian.org/',
    'https://evilftp.acc.umu.se/',
    'https://cloud.debian.org:8443/',
  ];
  for (const url of [...refused, 'https://127.0.0.1/', 'https://cloud.debian.org.example/'])
    assert.equal(makers(url), false, url);
  const mirror = asks('http://10.0.0.5:8000/images/');
  assert.equal(mirror('http://10.0.0.5:8000/elsewhere'), true);
  for (const url of [known.url, 'http://10.0.0.5/', 'https://10.0.0.5:8000/'])
    assert.equal(mirror(url), false, url);
  const path = new KnownImageAddresses(outbound, 'http://10.0.0.5:8000/images/').of(known.url);
  assert.equal(path, `http://10.0.0.5:8000/images/${known.url.slice('https://'.length)}`);
});
