/**
 * Run as a program: writes documents to the given file, counting from the given number, until it is killed.
 * Prints each number once its document is durable.
 */
import { serialize } from 'bson';
import { DocumentDatabase, decodeCommand } from '../../libs/mongo/index.ts';
import { systemClock } from '../platform/clock.ts';

const [, , file = '', from = '0'] = process.argv;
const options = { file, databaseName: 'shop', sizeLimit: () => 2 ** 30, clock: systemClock };
const database = new DocumentDatabase(options);

async function run(command: object): Promise<void> {
  const reply = database.run(decodeCommand(serialize({ ...command, $db: 'shop' })), { readOnly: false });
  if (reply.ok !== 1 || reply.writeErrors) throw new Error(JSON.stringify(reply));
  await database.durable();
}

await run({ createIndexes: 'people', indexes: [{ key: { mail: 1 }, name: 'mail', unique: true }] });
for (let number = Number(from); ; number++) {
  await run({ insert: 'people', documents: [{ _id: number, mail: `${number}@example.com`, turns: 0 }] });
  await run({
    update: 'people',
    updates: [{ q: { mail: `${number}@example.com` }, u: { $inc: { turns: 1 } } }],
  });
  process.stdout.write(`${number}\n`);
}
