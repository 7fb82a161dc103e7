/** The pages of the console, for tests that look at all of them. */
import type { CheckedClient } from '../harness/checked-client.ts';
import { newDatabase } from './databases-kit.ts';

const tabs = (path: string, ...names: readonly string[]) => [
  path,
  ...names.map((tab) => `${path}?tab=${tab}`),
];

/** Gives an administrator one of everything; resolves with the paths of all pages. */
export async function furnished(chief: CheckedClient): Promise<readonly string[]> {
  await chief.expect(201, '/api/buckets', { json: { name: 'papers', versioning: true } });
  for (const name of ['plan.txt', 'days/one.csv']) await chief.upload('papers', name, 'a,b\n1,2\n');
  const vm = await chief.expect(201, '/api/vms', { json: { name: 'web', instance_type: 't2.micro' } });
  const database = await newDatabase(
    chief,
    'CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT)',
    `INSERT INTO books VALUES (1, 'Emma')`,
  );
  await chief.expect(201, '/api/account/access-keys', { json: { name: 'backup', scopes: ['storage:read'] } });
  return [
    ...['/', '/storage', '/storage/s3', '/storage/s3/encryption-keys', '/machines', '/machines/new'],
    ...['/databases', '/databases/new', '/account', '/webhooks', '/recovery', '/reference'],
    ...tabs('/storage/papers', 'links', 'uploads', 'recovery', 'settings'),
    ...tabs(`/machines/${vm.vm_id}`, 'console', 'log', 'charts', 'recovery'),
    ...tabs(database.replace('/api', ''), 'query', 'tables', 'charts', 'log', 'manage'),
    ...tabs('/billing', 'report', 'ledger', 'prices'),
    ...tabs('/administration', 'accounts', 'invitations', 'machines', 'plans', 'prices', 'images', 'upkeep'),
    ...['revenue', 'audit'].map((tab) => `/administration?tab=${tab}`),
  ];
}
