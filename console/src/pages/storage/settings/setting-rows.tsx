/** Settings that are lists of rules: rules are added, changed and removed, each in a frame. */
import { PlusIcon, XMarkIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Button, Group, Paper, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';

/** A rule with a client-side key for its inputs. */
export interface Row<Rule> {
  readonly id: number;
  readonly rule: Rule;
}

export function rowsOf<Rule>(rules: readonly Rule[]): readonly Row<Rule>[] {
  return rules.map((rule, id) => ({ id, rule }));
}

/** An empty list removes the setting. */
export function rulesOf<Rule>(rows: readonly Row<Rule>[]): Rule[] | null {
  return rows.length === 0 ? null : rows.map(({ rule }) => rule);
}

interface RuleEditor<Rule> {
  readonly rule: Rule;
  readonly number: number;
  readonly onChange: (rule: Rule) => void;
  readonly onRemove: () => void;
}

interface SettingRowsProps<Rule> {
  readonly rows: readonly Row<Rule>[];
  readonly words: { readonly none: string; readonly add: string };
  readonly newRule: Rule;
  readonly onChange: (rows: readonly Row<Rule>[]) => void;
  /** Additional buttons beside the one that adds a rule. */
  readonly actions?: ReactNode;
  readonly children: (editor: RuleEditor<Rule>) => ReactNode;
}

export function SettingRows<Rule>(props: SettingRowsProps<Rule>) {
  const { rows, words, newRule, onChange, actions, children } = props;
  const nextId = Math.max(-1, ...rows.map(({ id }) => id)) + 1;
  return (
    <>
      {rows.length === 0 && <Text size="sm">{words.none}</Text>}
      {rows.map(({ id, rule }, index) => (
        <div key={id}>
          {children({
            rule,
            number: index + 1,
            onChange: (changed) => onChange(rows.map((row) => (row.id === id ? { id, rule: changed } : row))),
            onRemove: () => onChange(rows.filter((row) => row.id !== id)),
          })}
        </div>
      ))}
      <Group>
        <Button
          variant="subtle"
          size="compact-sm"
          leftSection={<PlusIcon width={16} aria-hidden />}
          onClick={() => onChange([...rows, { id: nextId, rule: newRule }])}
        >
          {words.add}
        </Button>
        {actions}
      </Group>
    </>
  );
}

interface RuleFrameProps {
  readonly title: string;
  readonly remove: string;
  readonly onRemove: () => void;
  /** Shown beside the button that removes the rule. */
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

export function RuleFrame({ title, remove, onRemove, aside, children }: RuleFrameProps) {
  return (
    <Paper withBorder p="md" radius="md" component="section" aria-label={title}>
      <Stack gap="sm">
        <Group justify="space-between" wrap="nowrap">
          <Text fw={600}>{title}</Text>
          <Group wrap="nowrap">
            {aside}
            <ActionIcon variant="subtle" color="gray" aria-label={remove} onClick={onRemove}>
              <XMarkIcon width={18} />
            </ActionIcon>
          </Group>
        </Group>
        {children}
      </Stack>
    </Paper>
  );
}
