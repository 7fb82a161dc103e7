/** Machines, databases, buckets and keys: they are named by their name or id. */
import type { AccessKey, Bucket, Cloud, Database, Pages, Vm } from '../sdk/index.ts';
import type { Command, Invocation, Option } from './command.ts';
import { ClientError, EXIT, UsageError } from './failures.ts';
import { sizeText } from './output.ts';
import { confirm } from './prompt.ts';

const YES: Readonly<Record<string, Option>> = { yes: { short: 'y', summary: 'do not ask' } };

/** The thing of that id or name. Throws ClientError if there is none, or more than one of that name. */
async function find<T>(
  list: Pages<T>,
  namesOf: (thing: T) => readonly [id: string, name: string],
  word: string,
): Promise<T> {
  const found: T[] = [];
  for await (const thing of list) {
    const [id, name] = namesOf(thing);
    if (id === word) return thing;
    if (name === word) found.push(thing);
  }
  const [only] = found;
  if (only === undefined) throw new ClientError(`there is no ${word}`, EXIT.notFound);
  if (found.length === 1) return only;
  const ids = found.map((thing) => namesOf(thing)[0]).join(', ');
  throw new ClientError(`${word} could be several: ${ids}`, EXIT.conflict, 'Use the id');
}

const findVm = (cloud: Cloud, word: string) =>
  find(cloud.listVms(), ({ vm_id, name }) => [vm_id, name], word);
const findDatabase = (cloud: Cloud, word: string) =>
  find(cloud.listDatabases(), ({ database_id, name }) => [database_id, name], word);

/** A command about one thing. */
function about<T>(
  of: (cloud: Cloud, word: string) => Promise<T>,
  work: (thing: T, call: Invocation & { readonly cloud: Cloud }) => Promise<void>,
): Command['run'] {
  return async (call) => {
    const { cloud } = call.session();
    await work(await of(cloud, call.words[0] ?? ''), { ...call, cloud });
  };
}

async function assertMeant({ options }: Invocation, question: string): Promise<void> {
  if (options.has('yes') || (await confirm(question))) return;
  throw new UsageError('nothing was deleted', 'Use --yes where there is no terminal');
}

/** A thing as lines of its members, without those that are empty. */
function linesOf(thing: object): string[] {
  const members = Object.entries(thing).filter(([, value]) => value !== null && value !== '');
  const width = Math.max(...members.map(([name]) => name.length));
  return members.map(([name, value]) => {
    return `${name.padEnd(width)}  ${typeof value === 'object' ? JSON.stringify(value) : value}`;
  });
}

/** Things of this computer's memory only: lists here have at most some hundred entries. */
async function all<T>(list: Pages<T>): Promise<T[]> {
  const things: T[] = [];
  for await (const thing of list) things.push(thing);
  return things;
}

const stateLine = ({ name, state }: Vm) => [`${name} is ${state}`];

const VM_COMMANDS: readonly Command[] = [
  {
    name: 'vm ls',
    words: '',
    summary: 'list the machines',
    run: async ({ session, output }) => {
      const vms = await all(session().cloud.listVms());
      output.table(vms, ['NAME', 'STATE', 'TYPE', 'ADDRESS', 'ID'], (vm) => {
        return [vm.name, vm.state, vm.instance_type, vm.ip_address, vm.vm_id];
      });
    },
  },
  {
    name: 'vm show',
    words: 'VM',
    summary: 'show a machine',
    run: about(findVm, async (vm, { output }) => output.one(vm, () => linesOf(vm))),
  },
  {
    name: 'vm start',
    words: 'VM',
    summary: 'start a machine',
    run: about(findVm, async ({ vm_id }, { cloud, output }) => {
      const vm = await cloud.startVm(vm_id);
      output.one(vm, () => stateLine(vm));
    }),
  },
  {
    name: 'vm stop',
    words: 'VM',
    summary: 'stop a machine',
    options: { force: { summary: 'cut its power' } },
    run: about(findVm, async ({ vm_id }, { cloud, output, options }) => {
      const vm = await cloud.stopVm(vm_id, { force: options.has('force') });
      output.one(vm, () => stateLine(vm));
    }),
  },
  {
    name: 'vm restart',
    words: 'VM',
    summary: 'stop a machine and start it again',
    run: about(findVm, async ({ vm_id }, { cloud, output }) => {
      await cloud.stopVm(vm_id);
      const vm = await cloud.startVm(vm_id);
      output.one(vm, () => stateLine(vm));
    }),
  },
  {
    name: 'vm rm',
    words: 'VM',
    summary: 'delete a stopped machine and its disk',
    options: YES,
    run: about(findVm, async ({ vm_id, name }, { cloud, output, ...call }) => {
      await assertMeant({ ...call, output }, `Delete ${name} and its disk?`);
      const deleted = await cloud.deleteVm(vm_id);
      output.one(deleted, () => [`${name} is deleted`]);
    }),
  },
];

const DATABASE_COMMANDS: readonly Command[] = [
  {
    name: 'db ls',
    words: '',
    summary: 'list the databases',
    run: async ({ session, output }) => {
      const databases = await all(session().cloud.listDatabases());
      output.table(databases, ['NAME', 'ENGINE', 'STATE', 'SIZE', 'ID'], (database: Database) => {
        const { name, engine, state, size_bytes, database_id } = database;
        return [name, engine, state, sizeText(size_bytes), database_id];
      });
    },
  },
  {
    name: 'db show',
    words: 'DATABASE',
    summary: 'show a database',
    run: about(findDatabase, async (database, { output }) => output.one(database, () => linesOf(database))),
  },
  {
    name: 'db url',
    words: 'DATABASE',
    summary: 'print the connection URI of a database',
    options: { show: { summary: 'with the password' } },
    run: about(findDatabase, async ({ database_id, connection }, { cloud, output, options }) => {
      const shown = options.has('show')
        ? (await cloud.getDatabaseCredentials(database_id)).connection
        : connection;
      output.one(shown, () => [shown.uri]);
    }),
  },
  {
    name: 'db rm',
    words: 'DATABASE',
    summary: 'delete a database; it can be undeleted for a while',
    options: YES,
    run: about(findDatabase, async ({ database_id, name }, { cloud, output, ...call }) => {
      await assertMeant({ ...call, output }, `Delete ${name}?`);
      const deleted = await cloud.deleteDatabase(database_id);
      output.one(deleted, () => [`${name} is deleted`]);
    }),
  },
];

const findBucket = (cloud: Cloud, word: string) => cloud.getBucket(word.replace(/^s3:\/\/|\/$/g, ''));

const BUCKET_COMMANDS: readonly Command[] = [
  {
    name: 'bucket show',
    words: 'BUCKET',
    summary: 'show the settings and the size of a bucket',
    run: about(findBucket, async (bucket: Bucket, { output }) => output.one(bucket, () => linesOf(bucket))),
  },
  {
    name: 'bucket versioning',
    words: 'BUCKET STATE',
    summary: 'turn versions on or off for later uploads',
    run: about(findBucket, async ({ name }, { cloud, output, words: [, state] }) => {
      if (state !== 'on' && state !== 'off') throw new UsageError('the state is on or off');
      const bucket = await cloud.changeBucket(name, { versioning: state === 'on' });
      output.one(bucket, () => [`versioning of ${name} is ${state}`]);
    }),
  },
  {
    name: 'bucket rm',
    words: 'BUCKET',
    summary: 'delete a bucket with everything in it',
    options: YES,
    run: about(findBucket, async ({ name, object_count }, { cloud, output, ...call }) => {
      await assertMeant({ ...call, output }, `Delete ${name} with ${object_count} objects, for ever?`);
      await cloud.deleteBucket(name, { force: true });
      output.one({ name, deleted: true }, () => [`${name} is deleted`]);
    }),
  },
];

const findKey = (cloud: Cloud, word: string) =>
  find(cloud.listAccessKeys(), ({ id, name }) => [id, name], word);

const KEY_COMMANDS: readonly Command[] = [
  {
    name: 'key ls',
    words: '',
    summary: 'list the access keys',
    run: async ({ session, output }) => {
      const keys = await all(session().cloud.listAccessKeys());
      output.table(keys, ['NAME', 'SCOPES', 'LAST USED', 'EXPIRES', 'ID'], (key: AccessKey) => {
        return [key.name, key.scopes.join(' '), key.last_used_at, key.expires_at, key.id];
      });
    },
  },
  {
    name: 'key rm',
    words: 'KEY',
    summary: 'revoke an access key immediately',
    options: YES,
    run: about(findKey, async ({ id, name }, { cloud, output, ...call }) => {
      await assertMeant({ ...call, output }, `Revoke ${name}?`);
      await cloud.deleteAccessKey(id);
      output.one({ id, revoked: true }, () => [`${name} is revoked`]);
    }),
  },
];

const LONGEST_WAIT_SECONDS = 60;

const OTHER_COMMANDS: readonly Command[] = [
  {
    name: 'usage',
    words: '',
    summary: 'show usage, its cost, and the credits that are left',
    options: {
      from: { value: 'DATE', summary: 'first day, 2026-05-01' },
      to: { value: 'DATE', summary: 'day after the last' },
    },
    run: async ({ session, output, options }) => {
      const [from, to] = [options.text('from'), options.text('to')];
      const query = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
      const report = await session().cloud.getUsage(query);
      if (output.isJson) return output.one(report, () => []);
      output.table(report.items, ['RESOURCE', 'METER', 'QUANTITY', 'UNIT', 'COST'], (item) => {
        return [item.name, item.meter, String(item.quantity), item.unit, String(item.cost)];
      });
      output.line(
        `total ${report.total_cost} credits; balance ${report.credits.balance}, plan ${report.plan}`,
      );
    },
  },
  {
    name: 'ops',
    words: 'OPERATION',
    summary: 'show an operation that was answered before its end',
    options: { wait: { summary: 'until it has ended' } },
    run: async ({ session, output, options, words: [id = ''] }) => {
      const { cloud } = session();
      const query = options.has('wait') ? { wait: LONGEST_WAIT_SECONDS } : {};
      let operation = await cloud.getOperation(id, query);
      while (options.has('wait') && operation.state === 'running')
        operation = await cloud.getOperation(id, query);
      output.one(operation, () => linesOf(operation));
      return operation.state === 'failed' ? EXIT.failure : EXIT.ok;
    },
  },
];

export const RESOURCE_COMMANDS: readonly Command[] = [
  ...VM_COMMANDS,
  ...DATABASE_COMMANDS,
  ...BUCKET_COMMANDS,
  ...KEY_COMMANDS,
  ...OTHER_COMMANDS,
];
