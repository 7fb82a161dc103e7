import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { randomFrom } from '../../server/testing/random.ts';
import {
  chunkSignature,
  EXAMPLE_SECRET,
  EXAMPLE_TIME,
  exampleKey,
  trailerSignature,
} from '../../server/testing/sign-s3.ts';
import { ChunkedBody, type ChunkedBodyOptions } from './chunked-body.ts';
import { S3Error } from './s3-error.ts';
import type { VerifiedSignature } from './signature.ts';

const VERIFIED: VerifiedSignature = {
  signingKey: exampleKey(EXAMPLE_SECRET),
  seed: 'ab'.repeat(32),
  scope: '20130524/us-east-1/s3/aws4_request',
  dateTime: EXAMPLE_TIME,
};
const DECLARED = 'x-amz-checksum-crc32c';
const isCode = (code: string) => (error: unknown) => error instanceof S3Error && error.code === code;

interface Mode {
  readonly signed: boolean;
  readonly trailer: boolean;
}
const MODES: Readonly<Record<string, Mode>> = {
  signed: { signed: true, trailer: false },
  'signed with trailers': { signed: true, trailer: true },
  'unsigned with trailers': { signed: false, trailer: true },
};

function options(mode: Mode, decodedLength: number | null): ChunkedBodyOptions {
  return { ...mode, decodedLength, declaredTrailers: mode.trailer ? [DECLARED] : [], verified: VERIFIED };
}

/** Frames of the chunks, and the trailers. */
function frames({ signed, trailer }: Mode, chunks: readonly Uint8Array[], seed = VERIFIED.seed): Buffer {
  let before = seed;
  const parts: (string | Uint8Array)[] = [];
  for (const chunk of [...chunks, new Uint8Array()]) {
    before = chunkSignature(EXAMPLE_SECRET, before, chunk);
    parts.push(`${chunk.length.toString(16)}${signed ? `;chunk-signature=${before}` : ''}\r\n`, chunk);
    if (chunk.length > 0) parts.push('\r\n');
  }
  if (trailer) parts.push(`${DECLARED}:sOO8/Q==\r\n`);
  if (trailer && signed) {
    const signature = trailerSignature(EXAMPLE_SECRET, before, `${DECLARED}:sOO8/Q==\n`);
    parts.push(`x-amz-trailer-signature:${signature}\r\n`);
  }
  parts.push('\r\n');
  return Buffer.concat(parts.map((part) => Buffer.from(part)));
}

/** `pieces`: where the bytes are split. */
function decode(given: ChunkedBodyOptions, body: Uint8Array, pieces: readonly number[] = []) {
  const decoder = new ChunkedBody(given);
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const end of [...pieces, body.length]) {
    parts.push(...decoder.push(body.subarray(at, end)));
    at = end;
  }
  return { data: Buffer.concat(parts), ...decoder.end() };
}

describe("Amazon's examples", () => {
  const chunks = [Buffer.alloc(65_536, 'a'), Buffer.alloc(1024, 'a')];
  const given = (seed: string, mode: Mode) => ({ ...options(mode, 66_560), verified: { ...VERIFIED, seed } });
  const framed = (signatures: readonly string[], end: string) =>
    Buffer.concat(
      [...chunks, Buffer.alloc(0)].flatMap((chunk, at) => [
        Buffer.from(`${chunk.length.toString(16)};chunk-signature=${signatures[at]}\r\n`),
        chunk,
        Buffer.from(chunk.length > 0 ? '\r\n' : end),
      ]),
    );

  test('signed chunks', () => {
    const body = framed(
      [
        'ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648',
        '0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497',
        'b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9',
      ],
      '\r\n',
    );
    assert.equal(body.length, 66_824);
    const seed = '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9';
    assert.equal(decode(given(seed, { signed: true, trailer: false }), body).data.length, 66_560);
  });

  for (const lineEnd of ['\n\r\n', '\r\n']) {
    test(`signed chunks and trailers, with ${JSON.stringify(lineEnd)} before the signature`, () => {
      const body = framed(
        [
          'b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2',
          '1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7',
          '2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992',
        ],
        `x-amz-checksum-crc32c:sOO8/Q==${lineEnd}` +
          'x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n',
      );
      const seed = '106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e';
      const { trailers } = decode(given(seed, { signed: true, trailer: true }), body);
      assert.deepEqual([...trailers], [[DECLARED, 'sOO8/Q==']]);
    });
  }
});

for (const [name, mode] of Object.entries(MODES)) {
  describe(name, () => {
    test('any data in any chunks comes out the same, wherever the bytes are cut', () => {
      const below = randomFrom(5);
      for (let round = 0; round < 60; round += 1) {
        const sizes = Array.from({ length: below(4) }, () => 8192 + below(20_000));
        if (below(2) === 0) sizes.push(1 + below(300));
        const chunks = sizes.map((size) => Buffer.from(Array.from({ length: size }, () => below(256))));
        const data = Buffer.concat(chunks);
        const body = frames(mode, chunks);
        const cuts = Array.from({ length: below(40) }, () => below(body.length)).sort((a, b) => a - b);
        const decoded = decode(options(mode, data.length), body, cuts);
        assert.ok(decoded.data.equals(data));
        assert.equal(decoded.trailers.get(DECLARED), mode.trailer ? 'sOO8/Q==' : undefined);
      }
    });

    test('byte by byte', () => {
      const body = frames(mode, [Buffer.from('hello')]);
      const cuts = Array.from({ length: body.length }, (_, at) => at);
      assert.equal(decode(options(mode, 5), body, cuts).data.toString(), 'hello');
    });

    test('cut short anywhere it is refused', () => {
      const body = frames(mode, [Buffer.from('hello')]);
      for (let end = 0; end < body.length; end += 1) {
        assert.throws(() => decode(options(mode, 5), body.subarray(0, end)), isCode('IncompleteBody'));
      }
    });

    test('bytes after its end, another length and broken frames are refused', () => {
      const body = frames(mode, [Buffer.from('hello')]);
      const text = body.toString('latin1');
      const refuse = (sent: string, length: number | null = 5) =>
        assert.throws(
          () => decode(options(mode, length), Buffer.from(sent, 'latin1')),
          isCode('IncompleteBody'),
          sent,
        );
      refuse(`${text}x`);
      refuse(text, 4);
      refuse(text, 6);
      refuse(text.replace('\r\n', '\n'));
      refuse(text.replace('hello\r\n', 'hello'));
      refuse(text.replace('hello\r\n', 'hello!\r\n'));
      refuse(text.replace(/^5/, ''));
      refuse(text.replace(/^5/, '-5'));
      refuse(text.replace(/^5/, 'g'));
      refuse(text.replace(/^5/, '5555555555555'));
      refuse(text.replace('\r\n', `${' '.repeat(17_000)}\r\n`));
      refuse(text.replace(/(.*)\r\n$/s, '$1\n'));
    });

    test('no byte can change without being noticed, but in an unsigned body', () => {
      const body = frames(mode, [Buffer.alloc(8192, 'x'), Buffer.from('hello')]);
      const below = randomFrom(9);
      for (let round = 0; round < 300; round += 1) {
        const hurt = Buffer.from(body);
        const at =
          below(4) === 0 ? below(hurt.length) : below(2) === 0 ? below(90) : hurt.length - 1 - below(350);
        hurt[at] = (hurt[at] ?? 0) ^ (1 << below(8));
        try {
          const { data } = decode(options(mode, 8197), hurt);
          const isSame = data.equals(Buffer.from(`${'x'.repeat(8192)}hello`));
          assert.ok(isSame || !mode.signed, `byte ${at}`);
        } catch (error) {
          assert.ok(error instanceof S3Error, String(error));
        }
      }
    });
  });
}

describe('signatures', () => {
  const mode: Mode = { signed: true, trailer: true };
  const chunks = [Buffer.alloc(9000, 'x'), Buffer.alloc(10, 'y')];
  const body = frames(mode, chunks).toString('latin1');
  const refuse = (sent: string, code: string) =>
    assert.throws(() => decode(options(mode, 9010), Buffer.from(sent, 'latin1')), isCode(code));
  const lineOf = (sent: string, start: string) => sent.slice(sent.indexOf(start)).split('\r\n', 1)[0] ?? '';

  test('an altered byte, a missing or another signature', () => {
    refuse(body.replace('xx', 'xy'), 'SignatureDoesNotMatch');
    refuse(body.replace('yyy', 'yxy'), 'SignatureDoesNotMatch');
    refuse(body.replace(/;chunk-signature=\w+/, ''), 'IncompleteBody');
    refuse(body.replace(/;chunk-signature=\w+(?=\r\ny)/, ''), 'IncompleteBody');
    refuse(body.replace(/signature=\w+/, `signature=${'0'.repeat(64)}`), 'SignatureDoesNotMatch');
    refuse(body.replace('sOO8', 'sOO9'), 'SignatureDoesNotMatch');
    refuse(body.replace(/x-amz-trailer-signature:\w+\r\n/, ''), 'MalformedTrailerError');
    refuse(body.replace(/signature:\w/, 'signature:'), 'SignatureDoesNotMatch');
  });

  test('are checked as well when others hash the chunks, also late', () => {
    const found = (sent: string, forget = 0) => {
      const decoder = new ChunkedBody(options(mode, 9010));
      decoder.leaveHashing();
      const hashes: string[] = [];
      let open = createHash('sha256');
      for (let at = 0; at < sent.length; at += 700) {
        for (const part of decoder.push(Buffer.from(sent.slice(at, at + 700), 'latin1'))) {
          open.update(part);
          if (!decoder.ends(part)) continue;
          hashes.push(open.digest('hex'));
          open = createHash('sha256');
        }
      }
      decoder.end();
      decoder.assertVerified(false);
      decoder.tookHashes(hashes.slice(forget));
      decoder.assertVerified(true);
      return hashes.length;
    };
    const refused = (sent: string, forget?: number) =>
      assert.throws(() => found(sent, forget), isCode('SignatureDoesNotMatch'));
    assert.equal(found(body), 2);
    refused(body, 1);
    refused(body.replace('xx', 'xy'));
    refused(body.replace('yyy', 'yxy'));
    refused(body.replace(/signature=\w+/, `signature=${'0'.repeat(64)}`));
    refused(body.replace('sOO8', 'sOO9'));
  });

  test('chunks in another order, or of another request', () => {
    const swapped = frames(mode, [Buffer.alloc(9000, 'x'), Buffer.alloc(9000, 'y')]).toString('latin1');
    const [one, two] = [lineOf(swapped, '2328;'), lineOf(swapped.slice(100), '2328;')];
    const other = swapped.replace(one, '#').replace(two, one).replace('#', two);
    assert.throws(() => decode(options(mode, 18_000), Buffer.from(other)), isCode('SignatureDoesNotMatch'));
    const foreign = frames(mode, chunks, 'cd'.repeat(32));
    assert.throws(() => decode(options(mode, 9010), foreign), isCode('SignatureDoesNotMatch'));
  });

  test('what came out of a bad chunk is followed by a throw', () => {
    const decoder = new ChunkedBody(options(mode, 9010));
    const sent = Buffer.from(body.replace('xx', 'xy'), 'latin1');
    assert.equal(decoder.push(sent.subarray(0, 5000)).length, 1);
    assert.throws(() => decoder.push(sent.subarray(5000)), isCode('SignatureDoesNotMatch'));
  });

  test('small chunks but the last', () => {
    const small = frames(mode, [Buffer.alloc(8191), Buffer.alloc(8192)]);
    assert.throws(() => decode(options(mode, 16_383), small), isCode('InvalidChunkSizeError'));
    const unsigned: Mode = { signed: false, trailer: true };
    const tiny = frames(unsigned, [Buffer.alloc(1), Buffer.alloc(2)]);
    assert.equal(decode(options(unsigned, null), tiny).data.length, 3);
  });

  test('need a verified request', () => {
    assert.throws(() => new ChunkedBody({ ...options(mode, 1), verified: null }), isCode('AccessDenied'));
  });
});

describe('trailers', () => {
  const mode: Mode = { signed: false, trailer: true };
  const body = (trailers: string) => Buffer.from(`2\r\nhi\r\n0\r\n${trailers}\r\n`);
  const cases: Readonly<Record<string, string>> = {
    'a declared one is missing': '',
    'one that was not declared': `${DECLARED}:a\r\nx-amz-checksum-crc32:b\r\n`,
    'one twice': `${DECLARED}:a\r\n${DECLARED}:a\r\n`,
    'a signature in an unsigned body': `${DECLARED}:a\r\nx-amz-trailer-signature:${'0'.repeat(64)}\r\n`,
    'no name': `:a\r\n`,
    'no colon': `${DECLARED}\r\n`,
  };
  for (const [what, trailers] of Object.entries(cases)) {
    test(what, () => {
      assert.throws(() => decode(options(mode, 2), body(trailers)), isCode('MalformedTrailerError'));
    });
  }

  test('none may come where none are announced', () => {
    const plain: Mode = { signed: true, trailer: false };
    const sent = frames(plain, []).toString('latin1').replace(/\r\n$/, `${DECLARED}:a\r\n\r\n`);
    assert.throws(() => decode(options(plain, 0), Buffer.from(sent)), isCode('MalformedTrailerError'));
  });

  test('names in any case, values trimmed', () => {
    const given = { ...options(mode, 2), declaredTrailers: ['X-Amz-Checksum-CRC32C'], verified: null };
    const { trailers } = decode(given, body(`X-Amz-Checksum-Crc32c: a== \r\n`));
    assert.deepEqual([...trailers], [[DECLARED, 'a==']]);
  });

  test('more than 16 KiB of them', () => {
    const given = { ...options(mode, 2), declaredTrailers: Array.from({ length: 900 }, (_, at) => `t${at}`) };
    const many = given.declaredTrailers.map((name) => `${name}:${'v'.repeat(20)}\r\n`).join('');
    assert.throws(() => decode(given, body(many)), isCode('IncompleteBody'));
  });
});
