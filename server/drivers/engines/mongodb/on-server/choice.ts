/** Where MongoDB databases are: on a server by URL, on the mongod of this host, or in our own engine. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../../../config/config.ts';
import { type ServerAddress, serverAddress } from '../../../managed-server/links/server-url.ts';
import { dataSeries } from '../../../managed-server/server-data.ts';
import { mongodPath } from './mongod-program.ts';

const PORT = 27_017;

export interface OperatorMongodb extends ServerAddress {
  /** Authentication database of the administrator. */
  readonly authSource: string;
  /** Null: the URL names none. */
  readonly replicaSet: string | null;
}

export type MongodbChoice =
  | { readonly kind: 'url'; readonly address: OperatorMongodb }
  | { readonly kind: 'host' }
  /** `why` an installed mongod is not used; null: none is installed. */
  | { readonly kind: 'built-in'; readonly why: string | null };

type Settings = Pick<Config, 'mongodbUrl' | 'mongodbServer' | 'databaseHost'>;

/** Existing databases keep their engine, whatever package is installed later. */
export function chooseMongodb(settings: Settings, folder: string, mongod = mongodPath()): MongodbChoice {
  const address = externalMongodb(settings);
  if (address !== null) return { kind: 'url', address };
  if (dataSeries({ keeper: join(folder, 'server', 'keeper') }) !== null) return { kind: 'host' };
  if (mongod === null) return { kind: 'built-in', why: null };
  const why = whyNot(settings, folder);
  if (why === null) return { kind: 'host' };
  return { kind: 'built-in', why: `${mongod} is not used: ${why}` };
}

function whyNot({ mongodbServer, databaseHost }: Settings, folder: string): string | null {
  if (mongodbServer === 'built-in') return 'CLOUDLET_MONGODB_SERVER is built-in';
  if (databaseHost !== '')
    return 'CLOUDLET_DATABASE_HOST requires TLS, which Cloudlet sets up only for its own engine';
  const hasOwn = existsSync(folder) && readdirSync(folder).some((name) => name.startsWith('d_'));
  return hasOwn ? "this cloud already has databases in Cloudlet's own engine" : null;
}

/** Operator's server in the settings; null: none. */
export function externalMongodb({ mongodbUrl }: { readonly mongodbUrl: string }): OperatorMongodb | null {
  if (mongodbUrl === '') return null;
  const address = serverAddress('CLOUDLET_MONGODB_URL', mongodbUrl, PORT);
  const { searchParams } = new URL(mongodbUrl);
  const tls = searchParams.get('tls');
  return {
    ...address,
    tls: tls === null ? address.tls : tls === 'true',
    caFile: searchParams.get('tlsCAFile'),
    authSource: searchParams.get('authSource') ?? (address.database || 'admin'),
    replicaSet: searchParams.get('replicaSet'),
  };
}
