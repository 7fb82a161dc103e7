/** The filters of the rows: current ones, and a form to add one. */
import { FunnelIcon } from '@heroicons/react/24/outline';
import { Button, NativeSelect, Pill, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import type { DatabaseRowFilter } from '../../../../../sdk/index.ts';
import { rowsText } from '../../../texts/rows-text.ts';
import { needsValue, OPERATORS, type Operator } from './filters.ts';
import classes from './rows.module.css';

const words = rowsText;

interface FilterBarProps {
  readonly columns: readonly string[];
  readonly filters: readonly DatabaseRowFilter[];
  readonly onChange: (filters: readonly DatabaseRowFilter[]) => void;
}

export function FilterBar({ columns, filters, onChange }: FilterBarProps) {
  const [column, setColumn] = useState(columns[0] ?? '');
  const [operator, setOperator] = useState<Operator>('eq');
  const [value, setValue] = useState('');
  const add = (event: FormEvent) => {
    event.preventDefault();
    const name = columns.includes(column) ? column : (columns[0] ?? '');
    onChange([...filters, { column: name, operator, ...(needsValue(operator) ? { value } : {}) }]);
    setValue('');
  };
  return (
    <form className={classes.filters} onSubmit={add} aria-label={words.filters}>
      <NativeSelect
        size="xs"
        aria-label={words.filterColumn}
        data={[...columns]}
        value={column}
        onChange={({ currentTarget }) => setColumn(currentTarget.value)}
      />
      <NativeSelect
        size="xs"
        aria-label={words.filterOperator}
        data={OPERATORS.map((one) => ({ value: one, label: words.operators[one] }))}
        value={operator}
        onChange={({ currentTarget }) => setOperator(currentTarget.value as Operator)}
      />
      {needsValue(operator) && (
        <TextInput
          size="xs"
          aria-label={words.filterValue}
          placeholder={words.filterValue}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          value={value}
          onChange={({ currentTarget }) => setValue(currentTarget.value)}
        />
      )}
      <Button size="xs" variant="default" type="submit" leftSection={<FunnelIcon width={16} />}>
        {words.addFilter}
      </Button>
      {filters.map((filter, at) => (
        <Pill
          // biome-ignore lint/suspicious/noArrayIndexKey: two may be the same
          key={at}
          withRemoveButton
          removeButtonProps={{
            'aria-label': words.removeFilter(sayFilter(filter)),
            'aria-hidden': false,
            tabIndex: 0,
          }}
          onRemove={() => onChange(filters.filter((_, index) => index !== at))}
        >
          {sayFilter(filter)}
        </Pill>
      ))}
    </form>
  );
}

function sayFilter({ column, operator, value }: DatabaseRowFilter): string {
  const name = words.operators[operator as Operator];
  return needsValue(operator as Operator) ? `${column} ${name} ${String(value)}` : `${column} ${name}`;
}
