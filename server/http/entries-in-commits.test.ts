/**
 * Each call that changes something, or shows a secret, hands its entry of the audit log on to the commit of
 * its effect. By the text of the handlers: a call whose handler does not is listed here, with the reason.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredRoutes } from '../cloud/edges.ts';
import { auditRuleOf } from './audited.ts';
import type { Route } from './route.ts';

const IN_DATABASE = 'the effect is in a database of the account';
const READS = 'it only reads';
const IN_BACKGROUND = 'it starts work of this process, which ends with it';

/** Calls without a commit of the metadata, which could contain the entry. */
const WITHOUT_COMMIT: Readonly<Record<string, string>> = {
  getAccount: READS,
  getProfile: READS,
  getDatabaseCredentials: READS,
  getWebhookSecret: READS,
  getOperation: READS,
  showRecoveryKey: READS,
  cancelDatabaseQuery: IN_DATABASE,
  verifyRecoveryPoint: IN_BACKGROUND,
  drillRecoveryPoint: IN_BACKGROUND,
  startScrub: IN_BACKGROUND,
  startLedgerVerification: IN_BACKGROUND,
  rotateMasterKey: 'the effect is in the file of the key, and values are sealed again step by step',
};

/** Whether the handler passes its whole call, or the entry of it, to somebody. */
function handsOn({ handler }: Route): boolean {
  const text = String(handler);
  const [head = ''] = text.split('=>', 1);
  if (head.includes('{')) return /\b(?:record|entry)\b/.test(head);
  const input = /^(?:async )?\(?\s*(\w+)\s*\)?\s*$/.exec(head)?.[1];
  if (input === undefined) return false;
  const takes = new RegExp(`\\{[^}]*\\b(?:record|entry)\\b[^}]*\\} = ${input};`);
  const passes = new RegExp(`(?:[(,]|\\.\\.\\.)\\s*${input}\\s*[,)}]`);
  return takes.test(text) || passes.test(text.slice(text.indexOf('=>')));
}

test('each call with an entry hands it on to its commit, or says why it has none', () => {
  const logged = declaredRoutes().filter((route) => ['change', 'secret'].includes(auditRuleOf(route).kind));
  assert.ok(logged.length > 100, `${logged.length}`);
  const silent = logged.filter((route) => !handsOn(route)).map(({ name }) => name);
  assert.deepEqual(silent.sort(), Object.keys(WITHOUT_COMMIT).sort());
});

test('a handler that takes only members of its call hands nothing on', () => {
  const route = (handler: unknown) => ({ handler }) as Route;
  const use = (..._: unknown[]) => undefined;
  assert.equal(handsOn(route(({ params }: { params: unknown }) => use(params))), false);
  assert.equal(handsOn(route((call: { params: unknown }) => use(call.params))), false);
  assert.equal(handsOn(route(() => use())), false);
  assert.equal(handsOn(route((call: { params: unknown }) => use(call, call.params))), true);
  assert.equal(handsOn(route((call: object) => use({ ...call, by: 1 }))), true);
  assert.equal(handsOn(route(({ entry }: { entry: unknown }) => use(entry))), true);
});
