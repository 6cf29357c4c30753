"""The program ``rmqtools`` as ``python -m rmqtools``."""

if __name__ == "__main__":
    from rmqtools_program import main

    main()
