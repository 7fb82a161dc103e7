/** The MongoDB server that stores databases: the operator's, or the one of this host. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { MongoClient } from 'mongodb';
import type { Readiness } from '../../../../databases/engine.ts';
import type { EngineServer } from '../../../managed-server/database-server.ts';
import { externalReadiness } from '../../../managed-server/database-server.ts';
import { ExternalServer, type ExternalServerDeps } from '../../../managed-server/links/external-server.ts';
import { makeServerSecret, readServerSecret } from '../../../managed-server/links/server-secret.ts';
import type { OperatorMongodb } from './choice.ts';
import { clientOf, factsOf, type MongodbFacts } from './operator-mongodb.ts';

export interface MongodbDeployment {
  readonly server: EngineServer;
  /** Includes the administrator's credentials. */
  address(): OperatorMongodb;
  /** A connection as administrator. */
  client(): MongoClient;
  /** Null: it was not checked yet. */
  facts(): Pick<MongodbFacts, 'version' | 'isReplicaSet'> | null;
  /** Secret from which all passwords of our users are derived. */
  secret(): Buffer;
  readiness(): Promise<Readiness>;
}

export interface OperatorDeploymentOptions extends Pick<ExternalServerDeps, 'alarms'> {
  /** Folder for Cloudlet's data about the server. */
  readonly folder: string;
  readonly address: OperatorMongodb;
}

/** The server of CLOUDLET_MONGODB_URL. */
export function operatorDeployment({
  folder,
  address,
  alarms,
}: OperatorDeploymentOptions): MongodbDeployment {
  const client = clientOf(address, address);
  const keeper = join(folder, 'external');
  let facts: MongodbFacts | null = null;
  const check = async () => {
    facts = await factsOf(client, address);
  };
  const server = new ExternalServer({ name: 'mongodb', alarms, check, begin: async () => {} });
  return {
    server,
    address: () => address,
    client: () => client,
    facts: () => facts,
    secret: () => {
      mkdirSync(keeper, { recursive: true, mode: 0o700 });
      makeServerSecret({ keeper });
      return readServerSecret({ keeper });
    },
    readiness: () =>
      externalReadiness(server, async () => ({
        version: facts?.version ?? null,
        limits: facts?.limits ?? [],
      })),
  };
}
