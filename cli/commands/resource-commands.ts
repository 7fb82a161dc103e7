/** Machines, buckets and keys, by name or id. */
import type {
  AccessKey,
  Bucket,
  BucketRestore,
  Cloud,
  NewAccessKey,
  Operation,
  Vm,
} from '../../sdk/index.ts';
import type { Command, Invocation } from '../command.ts';
import { EXIT, UsageError } from '../failures.ts';
import { folderKey } from '../files/below.ts';
import { remoteBucket, remoteOnly } from '../files/locations.ts';
import { counted, sizeText } from '../output.ts';
import { about, all, assertMeant, find, linesOf, showPoints, YES } from '../resources.ts';
import { givenText } from '../text-file.ts';
import { DATABASE_COMMANDS } from './database-commands.ts';
import { ROW_COMMANDS } from './row-commands.ts';

export const findVm = (cloud: Cloud, word: string) =>
  find(
    cloud.listVms(),
    { noun: 'machine', listedBy: 'vm ls', namesOf: ({ vm_id, name }) => [vm_id, name] },
    word,
  );

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
    options: { force: { summary: 'cut the power instead of shutting down' } },
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
    name: 'vm points',
    words: 'VM',
    summary: 'list the recovery points that contain a machine; for a deleted machine, give its ID',
    run: async ({ words: [word = ''], session, output }) => {
      const { cloud } = session();
      showPoints(await cloud.listVmPoints(await vmIdOf(cloud, word)), output);
    },
  },
  {
    name: 'vm restore',
    words: 'VM NAME',
    summary: 'restore a machine (a deleted one by its ID) from a recovery point as a new machine NAME',
    options: {
      point: { value: 'POINT', summary: 'recovery point to restore from (required)' },
      type: {
        value: 'TYPE',
        summary: 'instance type, with the same disk size; default: that of the machine in the recovery point',
      },
    },
    run: restoreVm,
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

const vmIdOf = async (cloud: Cloud, word: string) =>
  word.startsWith('vm-') ? word : (await findVm(cloud, word)).vm_id;

async function restoreVm({ words: [word = '', name = ''], options, session, output }: Invocation) {
  const [point_id, type] = [options.text('point'), options.text('type')];
  if (point_id === undefined) throw new UsageError('give --point POINT (see cloudlet vm points)');
  const { cloud } = session();
  const instance_type = type ?? (await findVm(cloud, word)).instance_type;
  const from = { vm_id: await vmIdOf(cloud, word), point_id };
  const made = await cloud.createVm({ name, instance_type, from }, { takesLong: true });
  output.one(made, () => [`${name} is ${made.state}: ${made.vm_id}`]);
}

const findBucket = (cloud: Cloud, word: string) => cloud.getBucket(remoteBucket(word));

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
    summary: 'turn versioning on or off for later uploads',
    run: about(findBucket, async ({ name }, { cloud, output, words: [, state] }) => {
      if (state !== 'on' && state !== 'off') throw new UsageError('STATE must be on or off');
      const bucket = await cloud.changeBucket(name, { versioning: state === 'on' });
      output.one(bucket, () => [`versioning of ${name} is ${state}`]);
    }),
  },
  {
    name: 'bucket settings',
    words: 'BUCKET [NAME] [VALUE]',
    summary: 'show the S3 settings of a bucket, or set one',
    details: 'VALUE is JSON, plain text, or @FILE; null removes the setting. --json prints the names.',
    run: about(findBucket, bucketSettings),
  },
  {
    name: 'bucket points',
    words: 'BUCKET',
    summary: 'list the recovery points that contain a bucket, even a deleted one',
    run: async ({ words: [word = ''], session, output }) => {
      showPoints(await session().cloud.listBucketPoints(remoteBucket(word)), output);
    },
  },
  {
    name: 'bucket restore',
    words: 'PATH',
    summary: 'restore an object, a folder (PATH/ or -r) or a bucket from a recovery point',
    options: {
      recursive: { short: 'r', summary: 'restore the folder with this name' },
      point: { value: 'POINT', summary: 'recovery point to restore from (required)' },
      to: { value: 'BUCKET', summary: 'target bucket, created if missing; default: the same bucket' },
      version: { value: 'ID', summary: 'restore this version of the object' },
      versions: { summary: 'restore all versions and delete markers, and the settings if the bucket is new' },
      replace: { summary: 'replace existing objects that differ; default: keep them' },
      preview: { summary: 'show what would be restored, without restoring' },
    },
    run: restoreBucket,
  },
  {
    name: 'bucket rm',
    words: 'BUCKET',
    summary: 'delete a bucket with everything in it',
    options: YES,
    run: about(findBucket, async ({ name, object_count, total_size }, { cloud, output, ...call }) => {
      const what = `${counted(object_count, 'object')}, ${sizeText(total_size)}`;
      await assertMeant({ ...call, output }, `Delete ${name} with ${what} permanently?`);
      await cloud.deleteBucket(name, { force: true });
      output.one({ name, deleted: true }, () => [`${name} is deleted`]);
    }),
  },
];

async function bucketSettings(
  { name: bucket }: Bucket,
  { cloud, output, words: [, name, value] }: Invocation & { readonly cloud: Cloud },
): Promise<void> {
  let settings = await cloud.getBucketSettings(bucket);
  if (name !== undefined) {
    const known = Object.keys(settings);
    if (!known.includes(name)) throw new UsageError(`NAME must be one of ${known.join(', ')}`);
    if (value === undefined) throw new UsageError('give a VALUE; null removes the setting');
    settings = await cloud.changeBucketSettings(bucket, { [name]: jsonOr(givenText(value)) });
  }
  if (Object.values(settings).every((each) => each === null)) output.note(`${bucket} has no settings`);
  output.one(settings, () => linesOf(settings));
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function restoreBucket({ words: [word = ''], options, session, output }: Invocation): Promise<void> {
  const [point_id, to, version] = ['point', 'to', 'version'].map((option) => options.text(option));
  if (point_id === undefined) throw new UsageError('give --point POINT (see cloudlet bucket points)');
  const { bucket, key } = remoteOnly(word);
  const isFolder = options.has('recursive') || key === folderKey(key);
  const done = await session().cloud.restoreBucket(
    bucket,
    {
      point_id,
      ...(isFolder ? { prefix: folderKey(key) } : { name: key }),
      ...(version !== undefined && { version_id: version }),
      ...(to !== undefined && { to_bucket: to }),
      existing: options.has('replace') ? 'replace' : 'keep',
      ...(options.has('versions') && { versions: true }),
      preview: options.has('preview'),
    },
    { takesLong: true, onOperation: tellProgress(output) },
  );
  output.one(done, () => restoreLines(done));
}

/** Shows the progress of a restore, and once how to cancel it. */
function tellProgress(output: Invocation['output']): (operation: Operation) => void {
  let isFirst = true;
  return ({ operation_id, progress }) => {
    if (progress === null) return;
    if (isFirst)
      output.note(`cloudlet api cancelOperation ${operation_id} cancels the restore; restored objects stay`);
    isFirst = false;
    const { done, total, bytes, total_bytes } = progress;
    const of = (all: string | null) => (all === null ? '' : ` of ${all}`);
    const objects = `${done}${of(total === null ? null : String(total))} objects`;
    output.note(`${objects}, ${sizeText(bytes)}${of(total_bytes === null ? null : sizeText(total_bytes))}`);
  };
}

function restoreLines(done: BucketRestore): string[] {
  const { objects, markers, size_formatted: size, to_bucket, preview, same, kept, replaced, refused } = done;
  const verb = preview ? 'would be restored' : 'restored';
  const more = [
    [markers, 'delete markers'],
    [replaced, 'replacing existing objects'],
    [same, 'unchanged'],
    [kept, 'kept because the existing object differs (see --replace)'],
    [refused, 'not restored'],
  ].flatMap(([count, what]) => (count === 0 ? [] : [`${count} ${what}`]));
  const rest = more.length === 0 ? '' : `; ${more.join(', ')}`;
  return [
    `${objects} ${objects === 1 ? 'object' : 'objects'} (${size}) ${verb} to ${to_bucket}${rest}`,
    ...done.refusals.map(({ name, reason }) => `${name}: ${reason}`),
    ...done.left_out.map(({ what, count, reason }) => `Not restored: ${what} (${count}). ${reason}`),
    ...(done.refusal === null ? [] : [`The restore would be refused: ${done.refusal}`]),
  ];
}

const findKey = (cloud: Cloud, word: string) =>
  find(
    cloud.listAccessKeys(),
    { noun: 'access key', listedBy: 'key ls', namesOf: ({ id, name }) => [id, name] },
    word,
  );

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
    name: 'key create',
    words: 'NAME',
    summary: 'create an access key and print it, once, with the key pair for S3 clients',
    options: {
      scope: { value: 'SCOPE', many: true, summary: 'scope of the key, such as storage:read (required)' },
      bucket: {
        value: 'BUCKET[/FOLDER]',
        many: true,
        summary: 'limit the key to a bucket, or to a prefix: BUCKET/PREFIX**; default: all buckets',
      },
      expires: { value: 'DATE', summary: 'expiry date, such as 2027-01-31; default: never' },
    },
    run: createKey,
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

async function createKey({ session, output, options, words: [name = ''] }: Invocation) {
  const [scopes, expires] = [options.list('scope'), options.text('expires')];
  if (scopes.length === 0) throw new UsageError('--scope is required, such as --scope storage:read');
  const buckets = options.list('bucket').map((path) => {
    const { bucket, key } = remoteOnly(path);
    // As elsewhere: a name is a prefix only if it ends with `*`.
    return { name: bucket, prefix: /\*+$/.test(key) ? key.replace(/\*+$/, '') : folderKey(key) };
  });
  const made = await session().cloud.createAccessKey({
    name,
    // The cloud validates the scopes.
    scopes: scopes as NewAccessKey['scopes'],
    ...(buckets.length > 0 && { buckets }),
    ...(expires !== undefined && { expires_at: expires.length === 10 ? `${expires} 00:00:00` : expires }),
  });
  output.one(made, () => [
    `api key           ${made.api_key}`,
    `access key id     ${made.access_key_id}`,
    `secret access key ${made.secret_access_key}`,
  ]);
}

const LONGEST_WAIT_SECONDS = 60;

const OTHER_COMMANDS: readonly Command[] = [
  {
    name: 'usage',
    words: '',
    summary: 'show usage, cost and remaining credits',
    options: {
      from: { value: 'DATE', summary: 'first day, such as 2026-05-01' },
      to: { value: 'DATE', summary: 'day after the last day, such as 2026-06-01' },
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
    words: '[OPERATION]',
    summary: 'list long-running operations, or show one',
    options: { wait: { summary: 'wait until the operation finishes' } },
    run: showOperations,
  },
];

async function showOperations({ session, output, options, words: [id] }: Invocation) {
  const { cloud } = session();
  if (id === undefined) {
    const operations = await all(cloud.listOperations());
    output.table(operations, ['CALL', 'STATE', 'BEGUN', 'ENDED', 'ID'], (operation) => {
      const { name, state, created_at, ended_at, operation_id } = operation;
      return [name, state, created_at, ended_at, operation_id];
    });
    return EXIT.ok;
  }
  const query = options.has('wait') ? { wait: LONGEST_WAIT_SECONDS } : {};
  let operation = await cloud.getOperation(id, query);
  while (options.has('wait') && operation.state === 'running')
    operation = await cloud.getOperation(id, query);
  output.one(operation, () => linesOf(operation));
  return operation.state === 'failed' ? EXIT.failure : EXIT.ok;
}

export const RESOURCE_COMMANDS: readonly Command[] = [
  ...VM_COMMANDS,
  ...DATABASE_COMMANDS,
  ...ROW_COMMANDS,
  ...BUCKET_COMMANDS,
  ...KEY_COMMANDS,
  ...OTHER_COMMANDS,
];
