"""Convert job files of other platforms into the body of a job, and jobs into such files.

Pure functions of text: nothing here opens a file or a connection.
"""
