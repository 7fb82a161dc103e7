/** The operator's MongoDB server: the check of its requirements, and its limitations. */
import { MongoClient, type MongoClientOptions } from 'mongodb';
import { AppError } from '../../../../platform/errors.ts';
import { caOf } from '../../../managed-server/links/server-url.ts';
import { compareVersions } from '../../../managed-server/programs/unpacked-programs.ts';
import type { OperatorMongodb } from './choice.ts';
import { OLDEST } from './mongod-program.ts';

export interface MongodbFacts {
  /** `7.0.14`. */
  readonly version: string;
  /** Dumps are consistent snapshots. */
  readonly isReplicaSet: boolean;
  /** Limitations compared with the built-in engine, for people. */
  readonly limits: readonly string[];
}

const PATIENCE_MS = 5000;
const AUTHENTICATION_FAILED = 18;
/** Privileges needed on any database, and on the server. */
const NEEDED = [
  'createUser',
  'dropUser',
  'createRole',
  'grantRole',
  'dropDatabase',
  'find',
  'insert',
  'dbStats',
];
const NEEDED_OF_SERVER = ['listDatabases', 'inprog', 'killop', 'killAnySession'];
const ROLES =
  'root, or userAdminAnyDatabase, readWriteAnyDatabase, dbAdminAnyDatabase, clusterMonitor and hostManager';
const LIMITS = [
  'Cloudlet does not limit its memory, disk and connections',
  'users of databases may run JavaScript in it unless security.javascriptEnabled is false',
];

/** A driver, not yet connected. Without a user: unauthenticated. Throws `engine_unavailable`. */
export function clientOf(
  address: OperatorMongodb,
  login: { readonly user: string; readonly password: string; readonly authSource: string } | null,
  more: MongoClientOptions = {},
): MongoClient {
  const { host, port, tls, replicaSet } = address;
  const ca = tls ? caOf(address) : null;
  return new MongoClient(`mongodb://${host.includes(':') ? `[${host}]` : host}:${port}/`, {
    appName: 'cloudlet',
    serverSelectionTimeoutMS: PATIENCE_MS,
    journal: true,
    tls,
    ...(ca === null ? {} : { ca }),
    ...(replicaSet === null ? {} : { replicaSet }),
    ...(login === null
      ? {}
      : { auth: { username: login.user, password: login.password }, authSource: login.authSource }),
    ...more,
  });
}

/** Throws `engine_unavailable` with the problem and the fix. */
export async function factsOf(client: MongoClient, address: OperatorMongodb): Promise<MongodbFacts> {
  try {
    const admin = client.db('admin');
    const hello = await admin.command({ hello: 1 });
    const { version } = await admin.command({ buildInfo: 1 });
    const { authInfo } = await admin.command({ connectionStatus: 1, showPrivileges: true });
    const facts = {
      version: String(version),
      isSharded: hello.msg === 'isdbgrid',
      missing: missingOf(authInfo.authenticatedUserPrivileges ?? []),
      letsAnybodyIn: await letsAnybodyIn(address),
    };
    const unmet = unmetNeed(facts, address);
    if (unmet !== null) throw unmet;
    const isReplicaSet = hello.setName !== undefined;
    const limits = isReplicaSet
      ? LIMITS
      : [...LIMITS, 'dumps are not consistent snapshots, because the server is not a replica set'];
    return { version: facts.version, isReplicaSet, limits };
  } catch (error) {
    throw whyNotReached(error, address);
  }
}

/** Connects once, for `cloudlet doctor`. Throws `engine_unavailable` with the problem and the fix. */
export async function probe(address: OperatorMongodb): Promise<MongodbFacts> {
  const client = clientOf(address, address);
  return factsOf(client, address).finally(() => client.close(true));
}

interface Privilege {
  readonly resource: { readonly db?: string; readonly collection?: string; readonly [name: string]: unknown };
  readonly actions: readonly string[];
}

/** Actions that the administrator may not. */
function missingOf(privileges: readonly Privilege[]): string[] {
  const may = (isRight: (resource: Privilege['resource']) => boolean) =>
    new Set(
      privileges.flatMap(({ resource, actions }) =>
        resource.anyResource === true || isRight(resource) ? actions : [],
      ),
    );
  const onAny = may(({ db, collection }) => db === '' && collection === '');
  const onServer = may(({ cluster }) => cluster === true);
  return [
    ...NEEDED.filter((action) => !onAny.has(action)),
    ...NEEDED_OF_SERVER.filter((action) => !onServer.has(action)),
  ];
}

/** Without authorization, each database user could read all databases. */
async function letsAnybodyIn(address: OperatorMongodb): Promise<boolean> {
  const anonymous = clientOf(address, null);
  try {
    await anonymous.db('admin').command({ listDatabases: 1, nameOnly: true });
    return true;
  } catch (error) {
    if (typeof (error as { code?: unknown }).code === 'number') return false;
    throw error;
  } finally {
    await anonymous.close();
  }
}

/** Null: it is sufficient. */
export function unmetNeed(
  facts: { version: string; isSharded: boolean; missing: readonly string[]; letsAnybodyIn: boolean },
  { setting }: Pick<OperatorMongodb, 'setting'>,
): AppError | null {
  const refuse = (what: string, hint: string) =>
    new AppError('engine_unavailable', `The operator's MongoDB ${what}`, { hint });
  if (compareVersions(facts.version, OLDEST) < 0)
    return refuse(
      `is ${facts.version}, older than ${OLDEST}`,
      `upgrade it, or set ${setting} to another server`,
    );
  if (facts.isSharded)
    return refuse('is a sharded cluster', `name a replica set or a standalone server in ${setting}`);
  if (facts.letsAnybodyIn)
    return refuse(
      'does not require authentication',
      'set security.authorization: enabled in its configuration',
    );
  if (facts.missing.length === 0) return null;
  return refuse(
    `does not allow the user in ${setting} to ${facts.missing.join(', ')}`,
    `give that user ${ROLES}`,
  );
}

/** Repeats only the server's or network's message: never the password. */
function whyNotReached(error: unknown, { setting, host, port }: OperatorMongodb): AppError {
  if (error instanceof AppError) return error;
  const { code, message } = error as { code?: unknown; message: string };
  const where = `The operator's MongoDB at ${host}:${port}`;
  const refuse = (what: string, hint: string) =>
    new AppError('engine_unavailable', what, { hint, retryAfterSeconds: 5, cause: error });
  if (code === AUTHENTICATION_FAILED)
    return refuse(
      `${where} refuses the user in ${setting}`,
      `correct user, password and authSource in ${setting}`,
    );
  const fix = `start it, or correct ${setting}; name a private certificate with tlsCAFile=PATH in it`;
  return refuse(`${where} cannot be reached: ${message}`, fix);
}
