/** Earlier statements of a database, kept in this browser. */

import { ClockIcon } from '@heroicons/react/24/outline';
import { Button, Menu, Text } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { text } from '../../texts/text.ts';
import classes from './query-history.module.css';

const words = text.databases.query;
const KEPT_ENTRIES = 50;
const KEPT_MAX_LENGTH = 20_000;

export interface History {
  /** Newest first. */
  readonly entries: readonly string[];
  readonly add: (statement: string) => void;
  readonly clear: () => void;
}

export function useHistory(databaseId: string): History {
  const [entries, setEntries, clear] = useLocalStorage<readonly string[]>({
    key: `cloudlet.queries.${databaseId}`,
    defaultValue: [],
    getInitialValueInEffect: false,
  });
  const add = (statement: string) => {
    if (statement.length > KEPT_MAX_LENGTH) return;
    setEntries((before) => [statement, ...before.filter((one) => one !== statement)].slice(0, KEPT_ENTRIES));
  };
  return { entries, add, clear };
}

interface HistoryMenuProps {
  readonly history: History;
  readonly onChoose: (statement: string) => void;
}

export function HistoryMenu({ history: { entries, clear }, onChoose }: HistoryMenuProps) {
  return (
    <Menu position="bottom-end" width={420}>
      <Menu.Target>
        <Button variant="default" leftSection={<ClockIcon width={18} />}>
          {words.history}
        </Button>
      </Menu.Target>
      <Menu.Dropdown className={classes.list ?? ''}>
        {entries.length === 0 ? (
          <Menu.Item disabled>{words.historyEmpty}</Menu.Item>
        ) : (
          <>
            {entries.map((statement) => (
              <Menu.Item key={statement} onClick={() => onChoose(statement)}>
                <Text size="sm" className="mono" lineClamp={2}>
                  {statement}
                </Text>
              </Menu.Item>
            ))}
            <Menu.Divider />
            <Menu.Item onClick={clear}>{words.clearHistory}</Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
