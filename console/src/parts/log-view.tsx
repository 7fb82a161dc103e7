/** The log view: its end, which follows while the log grows, and a button to save it as a file. */
import { ArrowDownTrayIcon, ArrowPathIcon, ChevronDoubleDownIcon } from '@heroicons/react/24/outline';
import { Button, Group, Stack, Text } from '@mantine/core';
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { text } from '../texts/text.ts';
import { saveText } from './commands/copy.tsx';
import { Loaded, type Read } from './page.tsx';
import classes from './parts.module.css';
import { StateBadge } from './tables/state-badge.tsx';

interface LogViewProps {
  readonly query: Read<string> & { readonly isFetching: boolean };
  readonly lead: string;
  /** Shown instead of an empty log. */
  readonly empty: string;
  readonly fileName: string;
  /** The log may still grow: it is polled while its end is visible. */
  readonly isLive: boolean;
  /** Additional buttons. */
  readonly children?: ReactNode;
}

const words = text.shell.log;
/** Poll interval, ms. */
const FOLLOW_MS = 3000;

export function LogView({ query, lead, empty, fileName, isLive, children }: LogViewProps) {
  const { data: log = '' } = query;
  const [isAtEnd, setAtEnd] = useState(true);
  useFollowing(query, isLive && isAtEnd);
  const { refetch } = query;
  // The last lines may have been written just before the stop.
  useEffect(() => {
    if (!isLive) void refetch();
  }, [isLive, refetch]);
  return (
    <Stack>
      <Group justify="space-between">
        <Text c="dimmed">{lead}</Text>
        <Group gap="xs">
          {children}
          <Button
            variant="default"
            leftSection={<ArrowDownTrayIcon width={16} />}
            disabled={log === ''}
            onClick={() => saveText({ name: fileName, type: 'text/plain', content: wordsOfLog(log) })}
          >
            {words.download}
          </Button>
          {isLive ? (
            <Following isAtEnd={isAtEnd} onFollow={() => setAtEnd(true)} />
          ) : (
            <Button
              variant="default"
              leftSection={<ArrowPathIcon width={16} />}
              loading={query.isFetching}
              onClick={() => query.refetch()}
            >
              {words.refresh}
            </Button>
          )}
        </Group>
      </Group>
      <Loaded query={query}>
        {(written) =>
          written === '' ? (
            <Text>{empty}</Text>
          ) : (
            <LogText log={written} isAtEnd={isAtEnd} onScroll={setAtEnd} />
          )
        }
      </Loaded>
    </Stack>
  );
}

function Following({ isAtEnd, onFollow }: { isAtEnd: boolean; onFollow: () => void }) {
  if (isAtEnd) return <StateBadge tone="good" word={words.following} />;
  return (
    <Button variant="default" leftSection={<ChevronDoubleDownIcon width={16} />} onClick={onFollow}>
      {words.follow}
    </Button>
  );
}

/** One request at a time, and none while the page is hidden. */
function useFollowing({ isFetching, refetch }: LogViewProps['query'], isWanted: boolean): void {
  useEffect(() => {
    if (!isWanted || isFetching) return;
    const timer = setInterval(() => document.hidden || refetch(), FOLLOW_MS);
    return () => clearInterval(timer);
  }, [isWanted, isFetching, refetch]);
}

/** The end of a log. Terminal colours and cursor movements are removed: only the text is shown. */
const COMMANDS = new RegExp(
  [
    String.raw`\x1b\[[0-?]*[ -/]*[@-~]`,
    String.raw`\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)`,
    String.raw`\x1b[ -/]*[0-~]`,
    String.raw`[\0-\x08\x0b-\x1f]`,
  ].join('|'),
  'g',
);

/** Plain text of a log, without the empty lines that clearing a terminal leaves at the start. */
export function wordsOfLog(log: string): string {
  return log.replaceAll('\r\n', '\n').replace(COMMANDS, '').replace(/^\n+/, '');
}

interface LogTextProps {
  readonly log: string;
  /** Keeps the end visible when the log grows. */
  readonly isAtEnd: boolean;
  readonly onScroll: (isAtEnd: boolean) => void;
}

/** px above the end that still count as the end. */
const NEARLY = 30;

function LogText({ log, isAtEnd, onScroll }: LogTextProps) {
  const box = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    if (isAtEnd && log !== '') box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [log, isAtEnd]);
  return (
    <pre
      ref={box}
      className={classes.log}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
      tabIndex={0}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) =>
        onScroll(scrollHeight - scrollTop - clientHeight < NEARLY)
      }
    >
      {wordsOfLog(log)}
    </pre>
  );
}
