/**
 * A stand-in for `mongod` where it is not installed: it accepts exactly the options that Cloudlet passes, and
 * serves like OperatorMongodb.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { OperatorMongodb } from './operator-mongodb.ts';

const { values } = parseArgs({
  options: {
    dbpath: { type: 'string', default: '' },
    port: { type: 'string', default: '' },
    bind_ip: { type: 'string' },
    nounixsocket: { type: 'boolean' },
    auth: { type: 'boolean' },
    noscripting: { type: 'boolean' },
    wiredTigerCacheSizeGB: { type: 'string' },
    maxConns: { type: 'string' },
    setParameter: { type: 'string', multiple: true },
  },
});
writeFileSync(join(values.dbpath, 'WiredTiger'), 'WiredTiger\n');
await OperatorMongodb.open(values.dbpath, Number(values.port));
process.on('SIGTERM', () => process.exit(0));
