/** A `mongod` of this host, run and supervised like PostgreSQL. */
import { join } from 'node:path';
import type { MongoClient } from 'mongodb';
import {
  type ManagedEngineOptions,
  programsOrThrow,
  readinessOf,
} from '../../../managed-server/database-server.ts';
import { readServerSecret, rolePassword } from '../../../managed-server/links/server-secret.ts';
import { ManagedServer } from '../../../managed-server/managed-server.ts';
import { SHARED, userOfData } from '../../../managed-server/processes/server-owner.ts';
import { dataSeries } from '../../../managed-server/server-data.ts';
import type { OperatorMongodb } from './choice.ts';
import type { MongodbDeployment } from './deployment.ts';
import { findMongod } from './mongod-program.ts';
import { MongodServer } from './mongod-server.ts';
import { clientOf } from './operator-mongodb.ts';

const ADMIN = 'cloudlet';
const NOT_LET_IN = 18;
const WHAT_IT_IS =
  'The mongod of this host, managed by Cloudlet, which has not been tested with a real mongod; ' +
  "with CLOUDLET_MONGODB_SERVER=built-in a new cloud uses Cloudlet's own engine";

export interface HostDeploymentOptions
  extends Pick<ManagedEngineOptions, 'folder' | 'processes' | 'uidBase' | 'alarms' | 'warn' | 'firstPort'> {
  /** For tests. */
  readonly find?: (series: string | null) => ReturnType<typeof findMongod>;
}

export function hostDeployment(options: HostDeploymentOptions): MongodbDeployment {
  const { folder, processes, uidBase, alarms, warn, firstPort, find = findMongod } = options;
  const uid = userOfData(join(folder, SHARED), uidBase);
  const found = () => find(dataSeries(server.folders));
  const program = async () => programsOrThrow('MongoDB', await found());
  const secret = () => readServerSecret(server.folders);
  const address = (): OperatorMongodb => ({
    setting: 'CLOUDLET_MONGODB_SERVER',
    host: '127.0.0.1',
    port: server.port ?? 0,
    user: ADMIN,
    password: rolePassword(secret(), ADMIN),
    authSource: 'admin',
    database: '',
    tls: false,
    caFile: null,
    replicaSet: null,
  });
  let admin: MongoClient | null = null;
  const client = () => {
    admin ??= clientOf(address(), address());
    return admin;
  };
  let version: string | null = null;
  const greet = async (isNew: boolean) => {
    try {
      const logIn = () => client().db('admin').command({ ping: 1 });
      if (isNew) await logIn().catch((error) => makeAdministrator(error, address()));
      version = (await client().db('admin').command({ buildInfo: 1 })).version;
    } catch (error) {
      // The driver may have closed connections that failed to open at first.
      await admin?.close().catch(() => {});
      admin = null;
      throw error;
    }
  };
  const probe = () => client().db('admin').command({ ping: 1 });
  const kind = new MongodServer({ uid, firstPort, program, greet, probe });
  const server = new ManagedServer({ kind, processes, uid, folder: join(folder, SHARED), alarms, warn });
  return {
    server,
    address,
    client,
    secret,
    facts: () => (version === null ? null : { version, isReplicaSet: false }),
    readiness: async () => {
      const readiness = readinessOf(await found(), server.problem);
      return { ...readiness, reason: readiness.reason ?? WHAT_IT_IS };
    },
  };
}

/** A server without users allows creating the first one from this host. */
async function makeAdministrator(why: unknown, address: OperatorMongodb): Promise<void> {
  if ((why as { code?: unknown }).code !== NOT_LET_IN) throw why;
  const anonymous = clientOf(address, null);
  const { user, password: pwd } = address;
  try {
    await anonymous.db('admin').command({ createUser: user, pwd, roles: ['root'] });
  } finally {
    await anonymous.close();
  }
}
