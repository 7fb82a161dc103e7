/** Lazily loaded parts of pages: a failure is shown in place. */

import { Component, type ComponentType, lazy, type ReactNode, Suspense, useReducer } from 'react';
import { Refused } from './forms/warning.tsx';

/** `fallback`: shown while the part loads. */
export function lazyPart<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  fallback: ReactNode = null,
): ComponentType<Props> {
  const begin = () => lazy(async () => ({ default: await load() })) as unknown as ComponentType<Props>;
  let Part = begin();
  return function LazyPart(props: Props) {
    const [tries, tryAgain] = useReducer((count: number) => count + 1, 0);
    const onRetry = () => {
      // A lazy component never retries a failed load.
      Part = begin();
      tryAgain();
    };
    return (
      <PartBoundary key={tries} onRetry={onRetry}>
        <Suspense fallback={fallback}>
          <Part {...props} />
        </Suspense>
      </PartBoundary>
    );
  };
}

interface BoundaryProps {
  readonly onRetry: () => void;
  readonly children: ReactNode;
}

interface Caught {
  readonly error: unknown;
}

/** React knows boundaries as classes only. */
class PartBoundary extends Component<BoundaryProps, { readonly caught: Caught | null }> {
  override state = { caught: null as Caught | null };

  static getDerivedStateFromError(error: unknown) {
    return { caught: { error } };
  }

  override render() {
    const { caught } = this.state;
    if (caught === null) return this.props.children;
    return <Refused error={caught.error} onRetry={this.props.onRetry} />;
  }
}
