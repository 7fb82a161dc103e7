/** All rows of a table as a file, which the browser downloads with its own progress. */
import { ArrowDownTrayIcon } from '@heroicons/react/24/outline';
import { Button, Menu } from '@mantine/core';
import type { DatabaseTable } from '../../../../../sdk/index.ts';
import { useDownloads } from '../../../parts/commands/download.ts';
import { Refused } from '../../../parts/forms/warning.tsx';
import { rowsText as words } from '../../../texts/rows-text.ts';

const FORMATS = ['csv', 'jsonl', 'sql'] as const;
const OF_DOCUMENTS = ['csv', 'jsonl'] as const;

interface ExportMenuProps {
  readonly id: string;
  readonly table: DatabaseTable;
  /** Default: rows. */
  readonly hasDocuments?: boolean;
}

export function ExportMenu({ id, table: { name, schema }, hasDocuments = false }: ExportMenuProps) {
  const download = useDownloads();
  const target = schema === null ? { table: name } : { table: name, schema };
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button
            size="xs"
            variant="default"
            loading={download.isPending}
            leftSection={<ArrowDownTrayIcon width={16} aria-hidden />}
          >
            {words.export}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {(hasDocuments ? OF_DOCUMENTS : FORMATS).map((format) => (
            <Menu.Item
              key={format}
              onClick={() => download.mutate(async () => ['exportDatabaseRows', [id], { ...target, format }])}
            >
              {words.exportAs[format]}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      <Refused error={download.error} />
    </>
  );
}
