/** A form that makes one call: its values, and which errors are shown at which field. */
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { Invalidated } from '../queries.ts';
import { fieldError } from './forms/refusal.ts';

interface CloudFormOptions<Values, Made> {
  /** Initial values, named like the members of the API, whose errors name them. */
  readonly values: Values;
  readonly send: (values: Values) => Promise<Made>;
  readonly invalidates?: readonly Invalidated[];
  readonly onDone?: (made: Made) => unknown;
}

/** Members of `Values` that hold a `Value`. */
type NameOf<Values, Value> = {
  [Name in keyof Values]: Values[Name] extends Value ? Name : never;
}[keyof Values] &
  string;

interface Changed<Element> {
  readonly currentTarget: Element;
}

/** Props of an input. */
interface Field<Value, Change> {
  readonly value: Value;
  readonly error: string | undefined;
  readonly onChange: (change: Change) => void;
}

/** The state of a form as its frame needs it: `<form onSubmit={submit}>`, `<Refused {...refusal} />`. */
export interface SentForm {
  readonly isBusy: boolean;
  readonly submit: (event: FormEvent) => void;
  readonly refusal: { readonly error: unknown; readonly atFields: ReadonlySet<string> };
}

interface CloudForm<Values, Made> extends SentForm {
  readonly values: Values;
  /** The result of the call. */
  readonly made: Made | undefined;
  readonly set: (change: Partial<Values>) => void;
  /** Restores the initial values, without result or error. */
  readonly reset: () => void;
  /** The error of a field, shown by its input. */
  readonly errorOf: (name: string) => string | undefined;
  readonly text: (name: NameOf<Values, string>) => Field<string, Changed<{ value: string }>>;
  /** For inputs that pass the value itself; null changes nothing. */
  readonly of: <Name extends keyof Values & string>(name: Name) => Field<Values[Name], Values[Name] | null>;
  readonly check: (name: NameOf<Values, boolean>) => {
    readonly checked: boolean;
    readonly onChange: (event: Changed<{ checked: boolean }>) => void;
  };
}

export function useCloudForm<Values extends object, Made>(
  options: CloudFormOptions<Values, Made>,
): CloudForm<Values, Made> {
  const { send, invalidates = [], onDone } = options;
  const [values, setValues] = useState(options.values);
  const call = useMutation({
    mutationFn: () => send(values),
    meta: { shown: true, invalidates },
    onSuccess: (made) => onDone?.(made),
  });
  // Filled during rendering: a field that is not rendered cannot show its error.
  const atFields = new Set<string>();
  const errorOf = (name: string) => {
    atFields.add(name);
    return fieldError(call.error, name);
  };
  const set = (change: Partial<Values>) => setValues((before) => ({ ...before, ...change }));
  const put = (name: keyof Values, value: unknown) => set({ [name]: value } as Partial<Values>);
  return {
    values,
    made: call.data,
    isBusy: call.isPending,
    refusal: { error: call.error, atFields },
    set,
    errorOf,
    submit: (event) => {
      event.preventDefault();
      call.mutate();
    },
    reset: () => {
      setValues(options.values);
      call.reset();
    },
    text: (name) => ({
      value: values[name] as string,
      error: errorOf(name),
      onChange: ({ currentTarget }) => put(name, currentTarget.value),
    }),
    of: (name) => ({
      value: values[name],
      error: errorOf(name),
      onChange: (value) => value !== null && put(name, value),
    }),
    check: (name) => ({
      checked: values[name] as boolean,
      onChange: ({ currentTarget }) => put(name, currentTarget.checked),
    }),
  };
}
