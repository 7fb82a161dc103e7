/** All data of an account as one zip: the user's own, or for administrators any account's. */
import { Readable } from 'node:stream';
import type { Command, Values } from '../command.ts';
import { ClientError, EXIT } from '../failures.ts';
import { readManifest } from '../files/export-manifest.ts';
import { counted, type Output, sizeText } from '../output.ts';
import { writeWhole } from '../own-files.ts';

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
  const bytes = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
  const manifest = await writeWhole({ path, bytes }, { isPrivate: true, check: readManifest });
  if (manifest === undefined) return;
  const { account, counts, left_out: leftOut } = manifest;
  for (const { path: name, reason } of leftOut.slice(0, MOST_TOLD))
    output.warn(`left out ${name}: ${reason}`);
  const { files, bytes: total, left_out: missing } = counts;
  if (missing > MOST_TOLD) output.warn(`${counted(missing, 'file')} left out; MANIFEST.json names them`);
  output.one({ file: path, username: account.username, ...counts }, () => [
    `${path} contains ${counted(files, 'file')} of ${account.username}, ${sizeText(total)}`,
  ]);
}

export const EXPORT_COMMAND: Command = {
  name: 'account export',
  words: 'FILE',
  summary: 'save all data of your account as a zip: objects, dumps of databases, machines and the bill',
  details: [
    'MANIFEST.json in the zip names each file with its SHA-256, and what was left out and why. The key needs',
    'all scopes.',
  ].join('\n'),
  options: DISKS,
  run: async ({ session, output, options, words: [file = ''] }) => {
    await saveExport(await session().cloud.exportAccount(exportQuery(options)), file, output);
  },
};
