import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { type ErrorCode, isAppError } from '../../platform/errors.ts';
import { cases } from '../../testing/cases.ts';
import { type FileTarget, readForm } from './multipart.ts';

const TYPE = 'multipart/form-data; boundary=limit';

interface Part {
  readonly name: string;
  readonly value: string | Buffer;
  /** Makes the field a file. */
  readonly fileName?: string;
  readonly type?: string;
}

function formOf(parts: readonly Part[]): Buffer {
  const pieces = parts.flatMap(({ name, value, fileName, type }) => {
    const file = fileName === undefined ? '' : `; filename="${fileName}"`;
    const head = `--limit\r\nContent-Disposition: form-data; name="${name}"${file}\r\n`;
    const line = type === undefined ? '' : `Content-Type: ${type}\r\n`;
    return [Buffer.from(`${head}${line}\r\n`), Buffer.from(value), Buffer.from('\r\n')];
  });
  return Buffer.concat([...pieces, Buffer.from('--limit--\r\n')]);
}

/** A body that arrives in `pieces`; `complete` as set by Node once it is complete. */
function request(pieces: Iterable<Uint8Array>, { type = TYPE, cut = false } = {}): IncomingMessage {
  const body = Object.assign(new PassThrough(), { headers: { 'content-type': type }, complete: false });
  const send = async () => {
    for (const piece of pieces) {
      if (!body.write(piece)) await Promise.race([turnUntil(() => !body.writableNeedDrain)]);
    }
    if (cut) body.destroy();
    else {
      body.complete = true;
      body.end();
    }
  };
  void send();
  return body as unknown as IncomingMessage;
}

async function turnUntil(done: () => boolean): Promise<void> {
  for (let i = 0; i < 10_000 && !done(); i++) await turn();
}

/** Keeps the bytes of the file, copied as the contract requires. */
function collect(): { target: FileTarget; bytes: () => Buffer } {
  const seen: Buffer[] = [];
  const write = (chunk: Uint8Array) => {
    seen.push(Buffer.from(chunk));
    return undefined;
  };
  return { target: { write }, bytes: () => Buffer.concat(seen) };
}

const ignore: FileTarget = { write: () => undefined };

function refuses(parts: readonly Part[], code: ErrorCode, field?: string) {
  return assert.rejects(readForm(request([formOf(parts)]), ignore), (error) => {
    assert.ok(isAppError(error, code), String(error));
    if (field !== undefined) assert.equal(error.fields?.[0]?.field, field);
    return true;
  });
}

const file = (value: string | Buffer = 'bytes'): Part => ({
  name: 'file',
  value,
  fileName: 'f.bin',
  type: 'a/b',
});

test('however a form is cut into pieces and ordered, the same comes out', async () => {
  const value = fc.oneof(
    fc.string(),
    fc.constantFrom('', '\r\n', '--limit', '\r\n--limi', '--limit--', '\0'),
  );
  const content = fc.array(fc.oneof(fc.constantFrom('\r\n--limi', '\r', '\n--', '--limit'), fc.string()), {
    maxLength: 8,
  });
  await fc.assert(
    fc.asyncProperty(
      ...[
        value,
        value,
        content,
        fc.nat({ max: 2 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
      ],
      async (a, b, lines, index, lengths) => {
        const bytes = Buffer.from(lines.join(''));
        fc.pre(![a, b, bytes.toString()].some((text) => `\r\n${text}\r\n`.includes('\r\n--limit')));
        const parts: Part[] = [
          { name: 'one', value: a },
          { name: 'two', value: b },
        ];
        parts.splice(index, 0, file(bytes));
        const { target, bytes: seen } = collect();
        const form = await readForm(request(cut(formOf(parts), lengths)), target);
        assert.deepEqual(Object.fromEntries(form.fields), { one: a, two: b });
        assert.deepEqual(form.file, { fileName: 'f.bin', mimeType: 'a/b', charset: undefined });
        assert.ok(seen().equals(bytes));
      },
    ),
    { numRuns: cases(150) },
  );
});

function* cut(bytes: Buffer, lengths: readonly number[]): Generator<Buffer> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = lengths[i % lengths.length] ?? 1;
    yield bytes.subarray(at, at + length);
    at += length;
  }
}

test('names come as sent: in UTF-8, without folders, or none', async () => {
  const cases: readonly [string, string][] = [
    ['größe 😀.txt', 'größe 😀.txt'],
    ['C:\\temp\\a.txt', 'a.txt'],
    ['../../etc/passwd', 'passwd'],
    ['', ''],
  ];
  for (const [fileName, expected] of cases) {
    const parts = [{ ...file(), fileName }];
    assert.equal((await readForm(request([formOf(parts)]), ignore)).file?.fileName, expected);
  }
  assert.equal((await readForm(request([formOf([{ name: 'a', value: 'b' }])]), ignore)).file, undefined);
});

test('two files, a file of another name and a field given twice are refused', async () => {
  await refuses([file(), file()], 'invalid_request', 'file');
  await refuses([{ ...file(), name: 'other' }], 'invalid_request', 'other');
  const twice = { name: 'metadata', value: '{}' };
  await refuses([twice, file(), twice], 'invalid_request', 'metadata');
});

test('limits: fields up to 64 KiB, 20 of them', async () => {
  const long = (length: number) => [{ name: 'metadata', value: 'x'.repeat(length) }, file()];
  const form = await readForm(request([formOf(long(64 * 1024 - 1))]), ignore);
  assert.equal(form.fields.get('metadata')?.length, 64 * 1024 - 1);
  await refuses(long(64 * 1024 + 1), 'invalid_request', 'metadata');
  const many = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `f${i}`, value: '' }));
  assert.equal((await readForm(request([formOf(many(20))]), ignore)).fields.size, 20);
  await refuses(many(21), 'invalid_multipart');
});

test('a form that ends too soon, or is none, is refused', async () => {
  const whole = formOf([{ name: 'a', value: 'b' }, file('x'.repeat(1000))]);
  for (const length of [0, 5, 40, 90, 200, whole.length - 12]) {
    const reading = readForm(request([whole.subarray(0, length)]), ignore);
    await assert.rejects(reading, (error) => isAppError(error, 'invalid_multipart'), `${length}`);
  }
  for (const type of ['multipart/form-data', 'multipart/form-data; boundary=', 'text/plain']) {
    const reading = readForm(request([whole], { type }), ignore);
    await assert.rejects(reading, (error) => isAppError(error, 'invalid_multipart'), type);
  }
});

test('a client that goes away in the middle is distinguished from a bad form', async () => {
  const whole = formOf([file('x'.repeat(1000))]);
  const reading = readForm(request([whole.subarray(0, 300)], { cut: true }), ignore);
  await assert.rejects(reading, (error) => isAppError(error, 'bad_http'));
});

test('a client that went away before its form was read, whole or not, is not waited for', async () => {
  for (const complete of [false, true]) {
    for (const when of ['before', 'meanwhile']) {
      const body = request([]);
      body.complete = complete;
      const leave = async () => {
        body.destroy();
        for (let i = 0; i < 3; i++) await turn();
      };
      if (when === 'before') await leave();
      const reading = readForm(body, ignore);
      if (when === 'meanwhile') void leave();
      await assert.rejects(reading, (error) => isAppError(error, 'bad_http'), `${complete} ${when}`);
    }
  }
});

test('what the target throws comes out as it is, at once or later, and no byte follows', async () => {
  const failure = new Error('no space');
  for (const late of [false, true]) {
    let calls = 0;
    const write = () => {
      calls++;
      if (!late) throw failure;
      return turn().then(() => Promise.reject(failure));
    };
    const pieces = cut(formOf([file(Buffer.alloc(500_000))]), [60_000]);
    await assert.rejects(readForm(request(pieces), { write }), failure);
    await turn();
    assert.equal(calls, 1);
  }
});

test('what the target asked for may fail when the form is refused at once', async () => {
  let asked = 0;
  const write = () => {
    asked++;
    return turn().then(() => Promise.reject(new Error('aborted')));
  };
  const form = Buffer.concat([
    formOf([file(Buffer.alloc(1000))]).subarray(0, -4),
    Buffer.from('\r\nno header\r\n\r\n'),
  ]);
  await assert.rejects(readForm(request([form]), { write }), { code: 'invalid_multipart' });
  // An unhandled rejection would fail this test.
  await turn();
  await turn();
  assert.equal(asked, 1);
});

test('while the target asks to wait, no byte comes and the client is not read on', async () => {
  let taken = 0;
  let waiting = false;
  let release = () => {};
  const write = (chunk: Uint8Array) => {
    assert.ok(!waiting, 'a chunk came while the target was waiting');
    taken += chunk.length;
    waiting = true;
    return new Promise<void>((resolve) => {
      release = () => {
        waiting = false;
        resolve();
      };
    });
  };
  const bytes = 4 * 2 ** 20;
  let sent = 0;
  const counted = function* () {
    for (const piece of cut(formOf([file(Buffer.alloc(bytes))]), [16 * 1024])) {
      sent += piece.length;
      yield piece;
    }
  };
  const reading = readForm(request(counted()), { write });
  await turnUntil(() => waiting);
  for (let i = 0; i < 50; i++) await turn();
  assert.ok(sent < 2 ** 20, `${sent} bytes were read ahead`);
  let done = false;
  const finished = reading.then((form) => {
    done = true;
    return form;
  });
  while (!done) {
    release();
    await turn();
  }
  assert.equal((await finished).file?.fileName, 'f.bin');
  assert.equal(taken, bytes);
});
