/** What can be done with a whole database. */
import { Stack } from '@mantine/core';
import type { Database } from '../../../../sdk/index.ts';
import { DeletePart } from './delete-part.tsx';
import { DumpPart, LoadPart } from './dump-parts.tsx';
import { ForkPart } from './fork-part.tsx';
import { RestartPart } from './restart-part.tsx';
import { RotatePart } from './rotate-part.tsx';
import { SettingsPart } from './settings-part.tsx';

export function ManageTab({ database }: { database: Database }) {
  return (
    <Stack gap="md" maw={760}>
      <SettingsPart key={`${database.name} ${database.size_limit_mb}`} database={database} />
      <ForkPart database={database} />
      <DumpPart database={database} />
      <LoadPart database={database} />
      <RestartPart database={database} />
      <RotatePart database={database} />
      <DeletePart database={database} />
    </Stack>
  );
}
