/** MongoDB's description: Cloudlet's engine, the mongod of this host, or the operator's server. */
import { join } from 'node:path';
import type { Config } from '../../../config/config.ts';
import type { Finding } from '../../../platform/finding.ts';
import { dataSeries } from '../../managed-server/server-data.ts';
import type { BuiltEngine, EngineAbout, EngineTools } from '../shared/engine-about.ts';
import { notFound, ofExternal } from '../shared/engine-findings.ts';
import { MongodbEngine } from './mongodb-engine.ts';
import { chooseMongodb } from './on-server/choice.ts';
import { findMongod } from './on-server/mongod-program.ts';
import { MONGODB_PLANS } from './plans.ts';
import { MONGODB_ROWS } from './rows.ts';
import { mongodbSnippets, mongoose } from './snippets.ts';

const FOLDER = 'databases/mongodb';

export const MONGODB: EngineAbout = {
  name: 'mongodb',
  title: 'MongoDB',
  summary: 'A document database with the commands of MongoDB.',
  port: 27_017,
  traits: {
    language: 'documents',
    dialect: null,
    transport: 'tcp',
    hasLog: false,
    offersTls: true,
    hasTestDatabases: true,
    hasAccountServer: false,
  },
  client: { programs: ['mongosh'], package: 'mongosh' },
  damageCodes: [],
  rows: MONGODB_ROWS,
  plans: MONGODB_PLANS,
  dumpChanges: 'by_insertion',
  dumpBegins: /^\x6d\xe2\x99\x81/,
  snippets: mongodbSnippets,
  frameworks: (target) => [mongoose(target)],
  folder: FOLDER,
  programs: null,
  development: { isDefault: true, names: ['MONGODB_URL'], variables: ({ uri }) => ({ MONGODB_URL: uri }) },
  canUpgrade: false,
  doctor: async (config) => [await check(config)],
  build,
};

/** MongoDB's server code is loaded only where there is one: its driver has 150 modules. */
async function build(tools: EngineTools): Promise<BuiltEngine> {
  const { config, children, managed, serverUsers } = tools;
  const { alarms } = managed;
  const folder = join(config.dataDir, FOLDER);
  const firstPort = config.mongodbPort;
  const choice = chooseMongodb(config, folder);
  if (choice.kind === 'built-in') {
    const { sent, isPrivate, ports } = tools;
    const at = { folder, firstPort, ports, isPrivate, whyNoServer: choice.why };
    const engine = new MongodbEngine({ ...children, ...at, alarms, tls: managed.tls, sent });
    return { engine, wake: () => engine.wake() };
  }
  const [{ operatorDeployment }, { hostDeployment }, { ServerMongodb }] = await Promise.all([
    import('./on-server/deployment.ts'),
    import('./on-server/host-deployment.ts'),
    import('./on-server/server-engine.ts'),
  ]);
  const deployment =
    choice.kind === 'url'
      ? operatorDeployment({ folder, address: choice.address, alarms })
      : hostDeployment({ ...managed, folder, firstPort, uidBase: serverUsers.first('mongodb') });
  const engine = new ServerMongodb({ folder, deployment });
  return { engine, wake: () => engine.wake() };
}

async function check(config: Config): Promise<Finding> {
  const subject = 'MongoDB';
  const folder = join(config.dataDir, FOLDER);
  const choice = chooseMongodb(config, folder);
  if (choice.kind === 'url') {
    const { probe } = await import('./on-server/operator-mongodb.ts');
    return ofExternal(subject, probe(choice.address));
  }
  if (choice.kind === 'built-in') {
    const why = choice.why ?? 'mongod is not installed, and CLOUDLET_MONGODB_URL is not set';
    const { BUILT_IN_VERSION } = await import('./mongodb-engine.ts');
    return { level: 'ok', subject, detail: `${BUILT_IN_VERSION}, built-in engine; ${why}` };
  }
  const found = await findMongod(dataSeries({ keeper: join(folder, 'server/keeper') }));
  if (!('version' in found)) return notFound(subject, found);
  const untried = 'managed by Cloudlet, which has never been tested with a real mongod';
  return { level: 'ok', subject, detail: `${found.version}, ${found.command}; ${untried}` };
}
