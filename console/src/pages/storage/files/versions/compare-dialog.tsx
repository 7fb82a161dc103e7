/** Two versions of a text, and their differences. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { StorageObjectDetails } from '../../../../../../sdk/index.ts';
import { cloud } from '../../../../cloud.ts';
import { Dialog } from '../../../../parts/forms/dialog.tsx';
import { Loaded } from '../../../../parts/page.tsx';
import { sayName } from '../../../../parts/say.ts';
import { text } from '../../../../texts/text.ts';
import classes from '../../storage.module.css';
import { type DiffPart, diffOf } from './text-diff.ts';

interface CompareDialogProps {
  readonly object: StorageObjectDetails;
  /** The earlier version. */
  readonly version: string;
  readonly onClose: () => void;
}

/** Unchanged lines around a change. */
const AROUND = 3;

export function CompareDialog({ object, version, onClose }: CompareDialogProps) {
  const { id, bucket, name, version_id: current } = object;
  const texts = useQuery({
    queryKey: ['files', bucket, 'compared', id, version, current],
    queryFn: async ({ signal }) => {
      const read = async (version_id: string) =>
        (await cloud.downloadObject(id, { version_id }, { signal })).text();
      return Promise.all([read(version), read(current)]);
    },
  });
  return (
    <Dialog opened onClose={onClose} size="xl" title={text.storage.compareTitle(sayName(name))}>
      <Loaded query={texts}>{([before, after]) => <Changes before={before} after={after} />}</Loaded>
    </Dialog>
  );
}

function Changes({ before, after }: { before: string; after: string }) {
  const parts = useMemo(() => diffOf(before, after), [before, after]);
  if (before === after) return <Text size="sm">{text.storage.same}</Text>;
  if (parts === undefined) return <Text size="sm">{text.storage.tooDifferent}</Text>;
  return (
    <>
      <Text size="sm" c="dimmed" mb="xs">
        {text.storage.compareLead}
      </Text>
      <pre className={`mono ${classes.diff}`}>
        {parts.map((part, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts have no name, and stay in their order
          <Part key={at} part={part} isFirst={at === 0} isLast={at === parts.length - 1} />
        ))}
      </pre>
    </>
  );
}

/** Lines have signs too, because not everyone sees colours. */
function Part({ part, isFirst, isLast }: { part: DiffPart; isFirst: boolean; isLast: boolean }) {
  const { kind, lines } = part;
  if (kind === 'gone') return <del>{lines.map((line) => `− ${line}`).join('\n')}</del>;
  if (kind === 'new') return <ins>{lines.map((line) => `+ ${line}`).join('\n')}</ins>;
  const [head, tail] = [isFirst ? 0 : AROUND, isLast ? 0 : AROUND];
  const shown =
    lines.length <= head + tail + 1
      ? lines
      : [...lines.slice(0, head), '…', ...lines.slice(lines.length - tail)];
  return <>{shown.map((line) => `  ${line}\n`).join('')}</>;
}
