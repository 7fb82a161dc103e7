import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Busboy } from '@fastify/busboy';
import fc from 'fast-check';
import { cases } from '../../testing/cases.ts';
import { boundaryOf, decodeText, FormParser, MalformedForm, type PartHead } from './form-parser.ts';

const BOUNDARY = 'limit';

interface ReadPart {
  readonly head: PartHead;
  bytes: Buffer;
  ended: boolean;
}

/** The result of our parser for a body that arrives in `pieces`. */
function parse(pieces: Iterable<Buffer>, boundary = BOUNDARY): { parts: ReadPart[]; hasEnded: boolean } {
  const parts: ReadPart[] = [];
  const last = () => parts.at(-1) ?? assert.fail('bytes before the first part');
  const parser = new FormParser(boundary, {
    onPart: (head) => parts.push({ head, bytes: Buffer.alloc(0), ended: false }),
    onBytes: (bytes) => {
      assert.ok(bytes.length > 0);
      last().bytes = Buffer.concat([last().bytes, bytes]);
    },
    onPartEnd: () => {
      last().ended = true;
    },
  });
  for (const piece of pieces) {
    const own = Buffer.from(piece);
    parser.write(own);
    own.fill(0xff);
  }
  return { parts, hasEnded: parser.hasEnded };
}

/** The same with a widely used library; it shortens file names to the last folder and has default types. */
function parseWithBusboy(body: Buffer): Promise<{ name: string; fileName?: string; bytes: Buffer }[]> {
  return new Promise((resolve, reject) => {
    const parts: { name: string; fileName?: string; bytes: Buffer }[] = [];
    const busboy = new Busboy({
      headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
      defCharset: 'utf8',
      preservePath: true,
    });
    busboy.on('field', (name, value) => parts.push({ name, bytes: Buffer.from(value) }));
    busboy.on('file', (name, stream, fileName) => {
      const part = { name, fileName, bytes: Buffer.alloc(0) };
      parts.push(part);
      stream.on('data', (chunk) => {
        part.bytes = Buffer.concat([part.bytes, chunk]);
      });
    });
    busboy.on('finish', () => resolve(parts)).on('error', reject);
    busboy.end(body);
  });
}

function* cut(bytes: Buffer, lengths: readonly number[]): Generator<Buffer> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = lengths[i % lengths.length] ?? 1;
    yield bytes.subarray(at, at + length);
    at += length;
  }
}

const partOf = (disposition: string, content: string, more = '') =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; ${disposition}\r\n${more}\r\n${content}\r\n`;
const END = `--${BOUNDARY}--\r\n`;
const bodyOf = (...parts: string[]) => Buffer.from(parts.join('') + END);
const headOf = (disposition: string, more = '') =>
  parse([bodyOf(partOf(disposition, '', more))]).parts[0]?.head;

test('@fastify/busboy reads the same parts out of the same forms', async () => {
  const token = fc.stringMatching(/^[\p{L}\d ._()é日😀-]{1,12}$/u);
  const content = fc
    .array(fc.oneof(fc.constantFrom('\r\n--limi', '\r', '\n--', '--limit', '\r\n'), fc.string()), {
      maxLength: 6,
    })
    .map((pieces) => pieces.join(''))
    .filter((text) => !`\r\n${text}\r\n`.includes('\r\n--limit') && text.isWellFormed());
  const part = fc.record({ name: token, fileName: fc.option(token, { nil: undefined }), content });
  const lengths = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 });
  await fc.assert(
    fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 4 }), lengths, async (given, sizes) => {
      const body = bodyOf(
        ...given.map(({ name, fileName, content }) =>
          partOf(`name="${name}"${fileName === undefined ? '' : `; filename="${fileName}"`}`, content),
        ),
      );
      const { parts, hasEnded } = parse(cut(body, sizes));
      assert.ok(hasEnded && parts.every(({ ended }) => ended));
      const theirs = await parseWithBusboy(body);
      // Busboy reports files at once and fields when they end: the order differs.
      const sorted = (list: { name: string; fileName?: string | undefined; bytes: Buffer }[]) =>
        list.map(({ name, fileName, bytes }) => [name, fileName, bytes.toString('hex')].join('|')).sort();
      assert.deepEqual(
        sorted(parts.map(({ head: { name, fileName }, bytes }) => ({ name, fileName, bytes }))),
        sorted(theirs),
      );
    }),
    { numRuns: cases(300) },
  );
});

test('wherever a body is cut in two, the same parts come out', () => {
  const body = Buffer.concat([
    Buffer.from('a preamble\r\n--limi\r\n'),
    bodyOf(partOf('name="a"', '\r\n--limi\r'), partOf('name="file"; filename="f"', 'x\r\n--limi\r\n')),
    Buffer.from('an epilogue --limit\r\n'),
  ]);
  const whole = parse([body]);
  assert.deepEqual(
    whole.parts.map(({ bytes }) => bytes.toString()),
    ['\r\n--limi\r', 'x\r\n--limi\r\n'],
  );
  for (let at = 0; at <= body.length; at++) {
    assert.deepEqual(parse([body.subarray(0, at), body.subarray(at)]), whole, `cut at ${at}`);
  }
  assert.deepEqual(parse(cut(body, [1])), whole);
});

test('names and file names in every way that clients write them', () => {
  const cases: readonly [string, string | undefined][] = [
    ['name="file"', undefined],
    ['name="file"; filename=""', ''],
    ['name=file; filename=plain.txt', 'plain.txt'],
    ['name="file"; filename="größe 😀.txt"', 'größe 😀.txt'],
    ['name="file"; filename="a \\"b\\" \\\\ c"', 'a "b" \\ c'],
    ['name="file"; filename="C:\\temp\\a.txt"', 'C:\\temp\\a.txt'],
    ['name="file"; filename="a;b=c"', 'a;b=c'],
    ['NAME="file";FileName="x";', 'x'],
    ['name="file"; filename="x"; filename*=UTF-8\'\'na%C3%AFve%20%E2%82%AC', 'naïve €'],
    ['name="file"; filename*=iso-8859-1\'de\'gr%FC%DFe', 'grüße'],
  ];
  for (const [disposition, fileName] of cases) {
    const head = headOf(disposition);
    assert.deepEqual([head?.name, head?.fileName], ['file', fileName], disposition);
  }
});

test('the type of a part comes without parameters, the charset apart', () => {
  assert.equal(headOf('name="a"')?.type, 'text/plain');
  const head = headOf('name="a"', 'content-TYPE: Text/HTML; charset="latin1"\r\n');
  assert.deepEqual([head?.type, head?.charset], ['text/html', 'latin1']);
  assert.equal(decodeText(Buffer.from([0xe4]), 'latin1'), 'ä');
  assert.equal(decodeText(Buffer.from('\ufeffa'), 'utf-8'), '\ufeffa');
  assert.throws(() => decodeText(Buffer.from('x'), 'no-such'), MalformedForm);
});

test('what is no form is refused as soon as it shows', () => {
  const refused = {
    'no disposition': `--${BOUNDARY}\r\nContent-Type: a/b\r\n\r\n`,
    'no header at all': `--${BOUNDARY}\r\n\r\nx`,
    'no name': partOf('filename="x"', ''),
    'another disposition': `--${BOUNDARY}\r\nContent-Disposition: attachment; name="a"\r\n\r\n`,
    'an open quote': partOf('name="a', ''),
    'a line without a colon': partOf('name="a"', '', 'what is this\r\n'),
    'text behind the boundary': `--${BOUNDARY}less\r\n`,
    'endless blanks behind the boundary': `--${BOUNDARY}${' '.repeat(1000)}`,
    'endless headers': partOf('name="a"', '', `X: ${'y'.repeat(16 * 1024)}`),
    'endless headers without end': `--${BOUNDARY}\r\nX: ${'y'.repeat(17 * 1024)}`,
    'a broken extended name': partOf('name="a"; filename*=oops', ''),
  };
  for (const [what, text] of Object.entries(refused)) {
    assert.throws(() => parse([Buffer.from(text)]), MalformedForm, what);
  }
});

test('a body that ends too soon has not ended', () => {
  const body = bodyOf(partOf('name="a"', 'b'));
  for (let length = 0; length < body.length - 2; length++) {
    assert.equal(parse([body.subarray(0, length)]).hasEnded, false, `${length}`);
  }
  assert.equal(parse([body.subarray(0, body.length - 2)]).hasEnded, true);
});

test('boundaries', () => {
  const type = (rest: string) => `multipart/form-data${rest}`;
  assert.equal(boundaryOf(type('; boundary=a-b')), 'a-b');
  assert.equal(boundaryOf(type(';charset=utf-8; Boundary="a b:?"')), 'a b:?');
  for (const rest of ['', '; boundary=', '; boundary=""', `; boundary=${'x'.repeat(300)}`]) {
    assert.throws(() => boundaryOf(type(rest)), MalformedForm, rest);
  }
});
