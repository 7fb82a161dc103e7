/** A choice among a few options, as cards: each with a description, or why it is unavailable. */
import { Group, Radio, SimpleGrid, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { Prose } from '../commands/code.tsx';
import { Mark } from '../mark.tsx';
import classes from '../parts.module.css';

export interface Choice {
  readonly value: string;
  readonly title: string;
  /** Whether a mark stands before the title. */
  readonly isMarked?: boolean;
  /** Lines below the title. */
  readonly notes: readonly ReactNode[];
  readonly isDisabled?: boolean;
}

interface ChoicesProps {
  readonly label: string;
  readonly description?: string;
  readonly value: string;
  readonly options: readonly Choice[];
  readonly error?: string | undefined;
  /** Side by side on a wide screen. */
  readonly columns?: number;
  readonly onChange: (value: string) => void;
}

export function Choices(props: ChoicesProps) {
  const { label, description, value, options, error, columns = 3, onChange } = props;
  return (
    <Radio.Group label={label} description={description} value={value} error={error} onChange={onChange}>
      <SimpleGrid cols={{ base: 1, xs: 2, md: columns }} spacing="sm" mt="xs">
        {options.map((option) => (
          <Radio.Card
            key={option.value}
            value={option.value}
            disabled={option.isDisabled === true}
            data-disabled={option.isDisabled === true || undefined}
            className={classes.choice ?? ''}
            radius="md"
          >
            <Group wrap="nowrap" align="flex-start" gap="sm">
              <Radio.Indicator mt={2} />
              <Stack gap={2}>
                <span className={classes.choiceTitle}>
                  {option.isMarked === true && <Mark name={option.title} />}
                  {option.title}
                </span>
                {option.notes.map((note, line) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name, and never move
                  <span key={line} className={classes.choiceNote}>
                    {typeof note === 'string' ? <Prose>{note}</Prose> : note}
                  </span>
                ))}
              </Stack>
            </Group>
          </Radio.Card>
        ))}
      </SimpleGrid>
    </Radio.Group>
  );
}
