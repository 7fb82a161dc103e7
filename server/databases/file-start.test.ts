import assert from 'node:assert/strict';
import { test } from 'node:test';
import { begin } from './file-start.ts';

/** A file in pieces, which notes that its reading has ended. */
function fileOf(...texts: readonly string[]) {
  const state = { isEnded: false };
  const pieces = async function* () {
    try {
      for (const text of texts) yield Buffer.from(text);
    } finally {
      state.isEnded = true;
    }
  };
  return { state, pieces: pieces() };
}

const fourBytes = ({ length }: Buffer) => length >= 4;

test('the beginning is read, and then the whole file', async () => {
  for (const texts of [['abcdefgh'], ['a', 'bc', 'defg', 'h'], ['abcd', 'efgh']]) {
    const { pieces, state } = fileOf(...texts);
    const { head, whole } = await begin(pieces, fourBytes);
    assert.ok('abcdefgh'.startsWith(head.toString()) && head.length >= 4, head.toString());
    assert.equal(Buffer.concat(await Array.fromAsync(whole)).toString(), 'abcdefgh');
    assert.equal(state.isEnded, true);
  }
});

test('a short file, and an empty one, is its own beginning', async () => {
  for (const texts of [['ab'], ['a', '', 'b'], ['']]) {
    const overs: boolean[] = [];
    const isEnough = (head: Buffer, isOver: boolean) => {
      overs.push(isOver);
      return fourBytes(head);
    };
    const { head, whole } = await begin(fileOf(...texts).pieces, isEnough);
    assert.equal(head.toString(), texts.join(''));
    assert.deepEqual(Buffer.concat(await Array.fromAsync(whole)), head);
    assert.equal(overs.at(-1), true);
  }
});

test('a file that is not read on is ended, whether its rest was begun or not', async () => {
  const unread = fileOf('abcd', 'efgh');
  await (await begin(unread.pieces, fourBytes)).close();
  assert.equal(unread.state.isEnded, true);
  const left = fileOf('abcd', 'efgh');
  for await (const _ of (await begin(left.pieces, fourBytes)).whole) break;
  assert.equal(left.state.isEnded, true);
});

test('a beginning that comes in tiny pieces is looked at only once it has grown', async () => {
  const { pieces } = fileOf(...Array.from({ length: 4096 }, () => 'x'));
  let looks = 0;
  const isEnough = ({ length }: Buffer) => {
    looks++;
    return length >= 4000;
  };
  const { head, whole } = await begin(pieces, isEnough);
  assert.ok(head.length >= 4000 && looks < 100, `${head.length} ${looks}`);
  assert.equal(Buffer.concat(await Array.fromAsync(whole)).length, 4096);
});
