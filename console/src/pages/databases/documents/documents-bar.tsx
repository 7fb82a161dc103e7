/** Filter and order of documents, in MongoDB's syntax. */
import { FunnelIcon } from '@heroicons/react/24/outline';
import { Button, NativeSelect, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import type { DatabaseRowSort } from '../../../../../sdk/index.ts';
import { documentsText as words } from '../../../texts/documents-text.ts';
import classes from './documents.module.css';
import { documentIn } from './values.ts';

interface BarProps {
  readonly match: string;
  readonly sort: DatabaseRowSort | undefined;
  readonly onChange: (match: string, sort: DatabaseRowSort | undefined) => void;
}

export function DocumentsBar({ match, sort, onChange }: BarProps) {
  const [typed, setTyped] = useState(match);
  const [column, setColumn] = useState(sort?.column ?? '');
  const [isDown, setDown] = useState(sort?.descending === true);
  const [wrong, setWrong] = useState<string | null>(null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    try {
      if (typed.trim() !== '') documentIn(typed);
    } catch (error) {
      return setWrong((error as Error).message);
    }
    const path = column.trim() === '' && isDown ? '_id' : column.trim();
    onChange(typed.trim(), path === '' ? undefined : { column: path, ...(isDown && { descending: true }) });
  };
  return (
    <form className={classes.bar} onSubmit={submit} aria-label={words.filter}>
      <TextInput
        className={classes.match}
        size="xs"
        aria-label={words.filter}
        placeholder='{"city": "Berlin"}'
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        error={wrong}
        value={typed}
        onChange={({ currentTarget }) => {
          setTyped(currentTarget.value);
          setWrong(null);
        }}
      />
      <TextInput
        size="xs"
        aria-label={words.sortBy}
        placeholder="_id"
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        value={column}
        onChange={({ currentTarget }) => setColumn(currentTarget.value)}
      />
      <NativeSelect
        size="xs"
        aria-label={words.direction}
        data={[
          { value: 'up', label: words.ascending },
          { value: 'down', label: words.descending },
        ]}
        value={isDown ? 'down' : 'up'}
        onChange={({ currentTarget }) => setDown(currentTarget.value === 'down')}
      />
      <Button size="xs" variant="default" type="submit" leftSection={<FunnelIcon width={16} aria-hidden />}>
        {words.apply}
      </Button>
    </form>
  );
}
