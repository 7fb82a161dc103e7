/** All data of an account as one zip: the user's own, or for administrators any account's. */
import { createWriteStream, renameSync, rmSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command, Values } from '../command.ts';
import { ClientError, EXIT } from '../failures.ts';
import { readManifest } from '../files/export-manifest.ts';
import { counted, type Output, sizeText } from '../output.ts';

export const DISKS = { disks: { summary: 'include the disks of machines' } } as const;
/** Maximum missing files that are printed; the manifest names all. */
const MOST_TOLD = 20;

/** The query of an export. */
export function exportQuery(options: Values): { readonly disks?: boolean } {
  return options.has('disks') ? { disks: true } : {};
}

/**
 * Writes an export beside its target, and renames it once it is complete. Warns about missing
 * files. Throws ClientError for an interrupted one.
 */
export async function saveExport(response: Response, path: string, output: Output): Promise<void> {
  if (response.body === null) throw new ClientError('the export is empty', EXIT.unavailable);
  const part = `${path}.part`;
  try {
    const bytes = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
    await pipeline(bytes, createWriteStream(part, { flush: true, mode: 0o600 }));
    const { account, counts, left_out: leftOut } = await readManifest(part);
    renameSync(part, path);
    for (const { path: name, reason } of leftOut.slice(0, MOST_TOLD))
      output.warn(`left out ${name}: ${reason}`);
    const { files, bytes: total, left_out: missing } = counts;
    if (missing > MOST_TOLD) output.warn(`${counted(missing, 'file')} left out; MANIFEST.json names them`);
    output.one({ file: path, username: account.username, ...counts }, () => [
      `${path} contains ${counted(files, 'file')} of ${account.username}, ${sizeText(total)}`,
    ]);
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
}

export const EXPORT_COMMAND: Command = {
  name: 'account export',
  words: 'FILE',
  summary: 'save all data of your account as a zip: objects with versions, dumps, machines, the bill',
  details: [
    'MANIFEST.json in the zip names each file with its SHA-256, and what was left out and why. The key needs',
    'all scopes.',
  ].join('\n'),
  options: DISKS,
  run: async ({ session, output, options, words: [file = ''] }) => {
    await saveExport(await session().cloud.exportAccount(exportQuery(options)), file, output);
  },
};
