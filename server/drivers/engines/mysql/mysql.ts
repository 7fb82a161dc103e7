/** MySQL, described for `managed-server/`. Cloudlet runs MariaDB; the operator may run either. */

import { programsOrThrow, readinessOf } from '../../managed-server/database-server.ts';
import { markOf } from '../../managed-server/links/server-secret.ts';
import type { ClientWork } from '../../managed-server/programs/client-programs.ts';
import { SOCKET_LINK } from '../../managed-server/programs/client-programs.ts';
import { dataSeries } from '../../managed-server/server-data.ts';
import type { ClientTarget, SqlKind } from '../../managed-server/sql-server.ts';
import { guestDialect, OWN_DIALECT } from './dialects.ts';
import { REFUSALS, type ServerFacts, serverFacts, unmetNeed, unverifiable } from './external-server-facts.ts';
import { MysqlLinks } from './mysql-links.ts';
import { findClients, findPrograms, type MysqlClientPrograms } from './mysql-programs.ts';
import { MysqlServer, SOCKET } from './mysql-server.ts';
import { ADMIN } from './mysql-store.ts';

const CA_FILE = 'ca.pem';

export const MYSQL: SqlKind<MysqlLinks, ServerFacts> = {
  name: 'mysql',
  title: 'MariaDB',
  administrator: { user: ADMIN, database: 'mysql' },
  wrongPassword: 'ER_ACCESS_DENIED_ERROR',
  links: (deps, facts) => {
    const dialect = () => {
      if ('socket' in deps.endpoint) return OWN_DIALECT;
      const { kind = 'mariadb', countsUse = false } = facts() ?? {};
      return guestDialect(kind, { mark: `c_${markOf(deps.secret()).replace(/^\w+ /, '')}`, countsUse });
    };
    return new MysqlLinks({ ...deps, dialect });
  },
  process: (deps) => new MysqlServer(deps),
  readiness: async (folders, problem) => {
    const found = await findPrograms(folders && dataSeries(folders));
    // In the server's own format: no real MySQL has this number.
    const named = 'version' in found ? { version: `${found.version}-MariaDB` } : found;
    return readinessOf(named, problem);
  },
  command: async (target, work) => {
    const programs =
      'folders' in target
        ? programsOrThrow('MariaDB', await findPrograms(dataSeries(target.folders)))
        : programsOrThrow('mariadb-dump', await findClients());
    const { env, readOnly, dump, client } = programs;
    const command = work.program === 'dump' ? dump : client;
    const connection = { ...env, ...work.env, MYSQL_PWD: work.password };
    const files = 'host' in target && target.ca !== null ? { [CA_FILE]: target.ca } : {};
    return { command, args: argumentsOf(programs, target, work), env: connection, readOnly, files };
  },
  external: {
    title: 'MySQL server',
    database: 'information_schema',
    refusals: REFUSALS,
    facts: (links) => links.asAdmin(serverFacts),
    unmet: (facts, address) => (facts === null ? unverifiable(address) : unmetNeed(facts, address)),
    clients: () => findClients(),
  },
};

function argumentsOf(
  { plugins }: MysqlClientPrograms,
  target: ClientTarget<ServerFacts>,
  { user, args }: ClientWork,
): string[] {
  const rest = [`--user=${user}`, '--default-character-set=utf8mb4', ...args];
  if ('folders' in target) return ['--no-defaults', `--socket=${SOCKET_LINK}/${SOCKET}`, ...rest];
  const { host, port, ca } = target;
  const tls = ca === null ? ['--skip-ssl'] : [`--ssl-ca=${CA_FILE}`, '--ssl-verify-server-cert'];
  // The login plugins of MariaDB's clients for MySQL are in a folder beside them.
  const logins = plugins === null ? [] : [`--plugin-dir=${plugins}`];
  return ['--no-defaults', '--protocol=tcp', `--host=${host}`, `--port=${port}`, ...tls, ...logins, ...rest];
}
