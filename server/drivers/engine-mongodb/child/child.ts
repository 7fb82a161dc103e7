/**
 * The process that has one tenant's documents open: all that a driver sends is looked into here. The first
 * call is `open`, or, of an archive that a tenant sent, `check`.
 */
import type { Handler, Room } from '../../engine-children/child-call.ts';
import { type OpenHead, runChild } from '../../engine-children/child-main.ts';
import { CommandError } from '../command-error.ts';
import { decodeCommand, encodeReply } from '../values/bson-documents.ts';
import { Malformed, readDocuments, readSections } from '../wire/message-sections.ts';
import { checkHandler, copyHandler } from './child-archive.ts';
import { queryHandler } from './child-query.ts';
import { tablesHandler } from './child-tables.ts';
import { TenantDocuments } from './tenant-documents.ts';

runChild({
  handlers: { check: checkHandler },
  open: ({ file, copy, name, limits, ...room }: OpenHead) => {
    const tenant = new TenantDocuments({ file, name, room, limits });
    return {
      handlers: {
        command: commandHandler(tenant),
        query: queryHandler(tenant),
        tables: tablesHandler(tenant),
        copy: copyHandler(name, file, copy),
        room: async ({ head }) => {
          const { limits, ...room } = head as unknown as Room & Pick<OpenHead, 'limits'>;
          Object.assign(tenant, { room, limits });
          return { head: {} };
        },
      },
      flush: () => tenant.durable(),
      figures: () => ({ ...tenant.counters, sizeBytes: tenant.sizeBytes }),
      whenIdle: () => {},
      close: () => tenant.close(),
    };
  },
  errorName: (error) => (error instanceof CommandError ? error.codeName : null),
});

/** A command as its driver sent it: the sections of an OP_MSG. The answer's body is the reply. */
function commandHandler(tenant: TenantDocuments): Handler {
  return async ({ body }) => {
    try {
      return { head: {}, body: encodeReply(tenant.run(read(body), { readOnly: false })) };
    } catch (error) {
      if (error instanceof CommandError) return { head: {}, body: encodeReply(error.reply()) };
      if (!(error instanceof Malformed)) throw error;
      return { head: {}, body: encodeReply(new CommandError(22, error.message).reply()) };
    }
  };
}

function read(bytes: Buffer) {
  const { body, sequences } = readSections(bytes);
  const lists = sequences.map(({ identifier, bytes: list }) => ({
    identifier,
    documents: readDocuments(list),
  }));
  return decodeCommand(body, lists);
}
