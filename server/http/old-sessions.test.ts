import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredRoutes } from '../cloud/edges.ts';
import { auditRuleOf } from './audited.ts';
import { asksForPassword, type Route } from './route.ts';

/** Secret members of answers. */
const SECRETS = [
  ...['api_key', 'secret_access_key', 'session_token', 'secret', 'previous_secret', 'recovery_key'],
  'password',
];
/** Calls whose answers have such a member, and why a session does not need to repeat its password. */
const LEFT: Readonly<Record<string, string>> = {
  createDatabase: 'opens only the new database',
  createWebhook: 'signs only for the new webhook',
  updateAccount: 'shows the key only with current_password, or to a session that gave it',
  confirmRecoveryKey: 'the caller has the key',
  ...Object.fromEntries(
    ['listDatabases', 'getDatabase', 'changeDatabase', 'deleteDatabase', 'restartDatabase'].map((name) => [
      name,
      'never with its password',
    ]),
  ),
  undeleteDatabase: 'never with its password',
  loadDatabase: 'never with its password',
};

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
}

function membersOf(schema: Schema): string[] {
  const { properties = {}, anyOf = [], items } = schema;
  const inner = [...Object.values(properties), ...anyOf, ...(items === undefined ? [] : [items])];
  return [...Object.keys(properties), ...inner.flatMap(membersOf)];
}

const routes = declaredRoutes();
const isGuarded = ({ permission }: Route) => permission !== 'public';
const hasSecret = ({ responses }: Route) =>
  Object.values(responses).some((schema) =>
    membersOf(schema as Schema).some((name) => SECRETS.includes(name)),
  );
const nameOf = ({ name }: Route) => name;

test('an old session gets no secret: each call that answers one asks for the password, or says why not', () => {
  const open = routes.filter(
    (route) => isGuarded(route) && hasSecret(route) && asksForPassword(route) === null,
  );
  assert.deepEqual(open.map(nameOf).sort(), Object.keys(LEFT).sort());
});

test('each call that makes or shows a credential asks, in the one place that decides', () => {
  const secret = routes.filter((route) => isGuarded(route) && auditRuleOf(route).kind === 'secret');
  const hidden = secret.filter((route) => asksForPassword(route) === 'hide');
  assert.deepEqual(hidden.map(nameOf).sort(), ['getAccount', 'getDatabaseCredentials', 'getProfile']);
  const open = secret.filter((route) => asksForPassword(route) === null);
  // Operations ask where what they keep is a secret.
  const others = ['cancelOperation', 'createDatabase', 'createWebhook', 'getOperation'];
  assert.deepEqual(open.map(nameOf).sort(), others);
  assert.ok(secret.length > 12);
  const misplaced = routes.filter(
    (route) => route.oldSession !== undefined && auditRuleOf(route).kind !== 'secret',
  );
  assert.deepEqual(misplaced.map(nameOf), []);
});
