import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { answerTo, questionIn } from './names.ts';

const ADDRESS = 0x0a500001;

function asked(name: string, type = 1): Buffer {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
  const header = [0x12, 0x34, 0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, 0];
  return Buffer.from([...header, ...labels, 0, 0, type, 0, 1]);
}

/** Code and addresses of an answer. */
function read(answer: Buffer, question: Buffer) {
  const count = answer.readUInt16BE(6);
  assert.deepEqual(answer.subarray(0, 2), question.subarray(0, 2));
  assert.deepEqual(answer.subarray(12, question.length), question.subarray(12));
  assert.equal(answer.length, question.length + 16 * count);
  const addresses = Array.from({ length: count }, (_, at) =>
    answer.readUInt32BE(question.length + 16 * at + 12),
  );
  return { code: answer.readUInt16BE(2) & 15, addresses };
}

function answered(question: Buffer, found: Parameters<typeof answerTo>[1]) {
  const parsed = questionIn(question);
  assert.ok(parsed);
  return read(answerTo(parsed, found), question);
}

test('a name is read in any case and answered with its question', () => {
  const question = asked('Web-1.Internal');
  assert.equal(questionIn(question)?.name, 'web-1.internal');
  assert.deepEqual(answered(question, [ADDRESS]), { code: 0, addresses: [ADDRESS] });
  assert.deepEqual(answered(question, null), { code: 3, addresses: [] });
  assert.deepEqual(answered(question, 'refused'), { code: 5, addresses: [] });
});

test('a name that is there has no addresses of other kinds', () => {
  assert.deepEqual(answered(asked('web-1.internal', 28), [ADDRESS]), { code: 0, addresses: [] });
});

test('an answer fits into 512 bytes, however many have the longest name', () => {
  const question = asked([63, 63, 63, 61].map((length) => 'a'.repeat(length)).join('.'));
  const parsed = questionIn(question);
  assert.ok(
    parsed &&
      answerTo(
        parsed,
        Array.from({ length: 50 }, () => ADDRESS),
      ).length <= 512,
  );
});

test('a malformed question gets no answer, and is no error', () => {
  const question = asked('web-1.internal');
  for (let cut = 0; cut < question.length; cut++) assert.equal(questionIn(question.subarray(0, cut)), null);
  const response = Buffer.from(question);
  response[2] = 0x81;
  assert.equal(questionIn(response), null);
  // A name that points to itself.
  assert.equal(
    questionIn(Buffer.concat([question.subarray(0, 12), Buffer.from([0xc0, 12, 0, 1, 0, 1])])),
    null,
  );
  fc.assert(fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => void questionIn(Buffer.from(bytes))));
});
