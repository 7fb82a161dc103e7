/** Calls under one Idempotency-Key, asked again, and what their answers must have in common. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Entry } from '../harness/checked-client.ts';
import type { Answer, Client } from '../harness/client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { ACCOUNT_CASES } from './one-key-accounts.ts';
import { type Asked, callUnder, good, type KeptCases, type OneKeyKit } from './one-key-kit.ts';
import { RESOURCE_CASES } from './one-key-resources.ts';

/** At two nodes. */
const ROUNDS = 2;

export const CASES: KeptCases = { ...ACCOUNT_CASES, ...RESOURCE_CASES };

/** Settings of the clouds; `mailUrl`: of the server that takes their mail. */
export const envOf = (mailUrl: string) => ({
  CLOUDLET_FETCH_ALLOW: '127.0.0.0/8',
  CLOUDLET_SMTP_URL: mailUrl,
  CLOUDLET_MAIL_FROM: 'cloud@example.org',
  CLOUDLET_RATE_REGISTRATIONS: '10000',
  CLOUDLET_IMAGE_MIRROR: 'http://127.0.0.1:9/images',
});

const BUSY = new Set(['idempotency_in_flight', 'point_in_progress']);

export const takesKey = ({ operation }: Entry) =>
  operation.parameters.some(({ in: where, name }) => where === 'header' && /idempotency-key/i.test(name));

/** `countKept`: the number of answers stored for a key, one after the other. */
export function walk(kit: () => OneKeyKit, countKept?: (key: string) => Promise<number>): void {
  for (const [name, kept] of Object.entries(CASES)) {
    const { ask, once = false, replaced } = kept;
    test(name, async () => {
      const rounds = once || countKept === undefined ? 1 : ROUNDS;
      for (let round = 0; round < rounds; round++) {
        // No mail is for both clouds.
        const n = `${name.toLowerCase()}-${countKept === undefined ? 'alone' : round}`;
        const asked = await ask(kit(), n);
        const isKept = kept.reads !== true && asked.refusedWith === undefined;
        const answers = await answersOf(kit(), asked, n);
        for (const answer of answers) assertSame(answer, answers[0] as Answer, { asked, isKept });
        if (isKept) assert.ok(answers.slice(-2).every(isReplay));
        if (asked.effects !== undefined) assert.equal(await asked.effects(), 1);
        if (countKept === undefined) continue;
        const stored = !isKept ? 0 : replaced === undefined ? 1 : 2;
        assert.equal(await countKept(n), stored, 'how often an answer was stored under the key');
      }
    });
  }
}

/** Sent twice, the call has one effect, and one answer. */
export async function assertKept(node: Client, asked: Asked): Promise<void> {
  const first = await answerOf(node, asked, 'k');
  const second = await answerOf(node, asked, 'k');
  assertSame(second, first, { asked, isKept: true });
  assert.ok(isReplay(second));
}

/** At both nodes at once, then again at each. */
async function answersOf({ nodes }: OneKeyKit, asked: Asked, key: string): Promise<readonly Answer[]> {
  const [one, two] = nodes;
  const { nextKey } = asked;
  const isTogether = one.base !== two.base && nextKey === undefined;
  const first = isTogether
    ? await Promise.all(nodes.map((node) => answerOf(node, asked, key)))
    : [await answerOf(one, asked, key)];
  const again = nextKey === undefined ? asked : { ...asked, key: nextKey(first[0] as Answer) };
  return [...first, await answerOf(two, again, key), await answerOf(one, again, key)];
}

const isReplay = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true';

interface Expected {
  readonly asked: Pick<Asked, 'path' | 'refusedWith'>;
  /** Otherwise it is created again each time, with new times and ids. */
  readonly isKept: boolean;
}

function assertSame(answer: Answer, first: Answer, { asked: { path, refusedWith }, isKept }: Expected): void {
  if (refusedWith === undefined) good(answer, path);
  else assert.equal(answer.body.code, refusedWith);
  assert.equal(answer.status, first.status);
  if (isKept) assert.deepEqual(answer.body, first.body);
  else assert.deepEqual(Object.keys(answer.body), Object.keys(first.body));
}

/** Repeated while a node still produces the first answer for the key, or a point, as the API recommends. */
export async function answerOf(node: Client, asked: Asked, key: string): Promise<Answer> {
  const { key: credential = ADMIN_KEY, path } = asked;
  for (;;) {
    const answer = await node.as(credential ?? undefined).call(path, callUnder(key, asked));
    if (!BUSY.has(answer.body?.code)) return answer;
    await sleep(20);
  }
}
