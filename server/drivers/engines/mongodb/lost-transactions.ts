/** Error labels from which drivers know what to retry when the process of a database has ended. */
import { deserialize, serialize } from 'bson';
import { CommandError, readSections } from '../../../../libs/mongo/index.ts';

/**
 * The error of a command whose process ended, with its label: a transaction is gone with the
 * process, and may be run again; the outcome of a commit is unknown, and it may be repeated.
 */
export function asLostCommand(error: CommandError, sections: Buffer): CommandError {
  const label = labelOf(sections);
  return label === null ? error : new CommandError(error.code, error.message, { errorLabels: [label] });
}

/** The reply with that error, encoded. */
export function lostReply(error: CommandError, sections: Buffer): Uint8Array {
  return serialize(asLostCommand(error, sections).reply());
}

function labelOf(sections: Buffer): string | null {
  try {
    const command = deserialize(readSections(sections).body);
    if (command.autocommit !== false) return null;
    return 'commitTransaction' in command ? 'UnknownTransactionCommitResult' : 'TransientTransactionError';
  } catch {
    // Not a readable command, so there is no transaction.
    return null;
  }
}
